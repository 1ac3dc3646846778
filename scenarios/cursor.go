package scenarios

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// cursor reads the words of one line.
type cursor struct {
	words []word
	next  int
}

func (c *cursor) done() bool { return c.next == len(c.words) }

// here is the next word; at the line's end, a place there without a text.
func (c *cursor) here() word {
	if !c.done() {
		return c.words[c.next]
	}
	last := c.words[len(c.words)-1]
	return word{line: last.line, column: last.column + len(last.text)}
}

func (c *cursor) peek() string { return c.here().text }

// skip takes the next word if it is this one.
func (c *cursor) skip(text string) bool {
	found := c.peek() == text
	if found {
		c.next++
	}
	return found
}

// take returns the next word, which must be there.
func (c *cursor) take(what string) (word, error) {
	w := c.here()
	if c.done() {
		return w, w.errorf("here %s is missing", what)
	}
	c.next++
	return w, nil
}

// is says whether the next word is one of these.
func (c *cursor) is(words ...string) bool { return !c.done() && slices.Contains(words, c.peek()) }

// end refuses further words.
func (c *cursor) end() error {
	if !c.done() {
		return c.here().errorf("%q is too much here", c.peek())
	}
	return nil
}

func (c *cursor) oneOf(what string, known []string) (string, error) {
	w, err := c.take("a " + what)
	if err == nil && !slices.Contains(known, w.text) {
		err = w.errorf("%s", unknownName(what, w.text, known))
	}
	return w.text, err
}

// number reads a number from 1.
func (c *cursor) number(what string, most int64) (int64, error) {
	w, err := c.take("a number")
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(w.text, 10, 64)
	if err != nil || n < 1 || n > most || strconv.FormatInt(n, 10) != w.text {
		return 0, w.errorf("%s must be a number from 1 to %d, not %q", what, most, w.text)
	}
	return n, nil
}

// difference reads "by -1.00 CNY", in cents.
func (c *cursor) difference() (int64, error) {
	if !c.skip("by") {
		return 0, c.here().errorf("here by and an amount are missing, for example by -1.00 CNY")
	}
	w := c.here()
	if text, less := strings.CutPrefix(w.text, "-"); less {
		c.words = slices.Clone(c.words)
		c.words[c.next].text = text
		cents, err := c.amount()
		return -cents, err
	}
	return c.amount()
}

var amountPattern = regexp.MustCompile(`^[0-9]{1,9}\.[0-9]{2}$`)

// amount reads 198.00 CNY, in cents.
func (c *cursor) amount() (int64, error) {
	w, err := c.take("an amount, for example 198.00 CNY")
	if err != nil {
		return 0, err
	}
	cents, err := strconv.ParseInt(strings.Replace(w.text, ".", "", 1), 10, 64)
	if err != nil || cents == 0 || !amountPattern.MatchString(w.text) {
		return 0, w.errorf("%q is not an amount such as 198.00", w.text)
	}
	_, err = c.oneOf("currency", []string{"CNY"})
	return cents, err
}
