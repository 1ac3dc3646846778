package scenarios

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tillstorm/tillstorm/checker"
)

// settings are what a line of the setup may say, in the order in which they are read,
// wherever they stand: an order must know the start and the stock.
var settings = []struct {
	name, takes, means, example string
	read                        func(*parser, *cursor) error
}{
	{"start", "DATE TIME", "when the world begins; all clocks are UTC+8", "start 2026-03-02 14:00:00.000", (*parser).start},
	{"policy", "NAME VALUE", "how the shops close and what late money does: " + policyForms(), "policy close local-only", (*parser).policy},
	{"shop", "NAME VALUE", "how all shops are configured: " + namesOf(shopSettings), "shop scan-every 30s", (*parser).shop},
	{"channel", "NAME [SETTING VALUE]...", "that there is a channel (" + strings.Join(channelNames, ", ") + "), and how it differs from its kind: " + namesOf(channelSettings), "channel wechat copies none", (*parser).channel},
	{"stock", "SKU N", "what the stock service begins with", "stock S1 10", (*parser).stock},
	{"order", "ORDER|B1..B500 AMOUNT CNY [sku SKU] [quantity N] [channel CHANNEL] [expires TIME]", "an order, or many that are alike", "order A 198.00 CNY sku S1 expires 14:15:00.000", (*parser).order},
	{"clock", "NODE ahead|behind DURATION", "that a node's clock is wrong", "clock shop-1 ahead 20s", (*parser).clockOf},
	{"zone", "NODE ZONE", "that a node shows another zone's time", "zone shop-2 America/New_York", (*parser).zoneOf},
	{"must-fail", "DEFECT PROPERTY", "which property must break when the defect is planted", "must-fail late-success-ignored no-orphan-money", (*parser).mustFail},
}

// SetupLines returns the vocabulary of the setup.
func SetupLines() (lines []Line) {
	for _, s := range settings {
		lines = append(lines, Line{s.name + " " + s.takes, s.means, s.example})
	}
	return lines
}

func policyForms() string {
	var forms []string
	for _, p := range policyLines {
		forms = append(forms, p.name+" "+strings.Join(p.values, "|"))
	}
	return strings.Join(forms, ", ")
}

// namesOf tells settings by their examples.
func namesOf[T any](all []setting[T]) string {
	var names []string
	for _, s := range all {
		names = append(names, s.name+" "+s.example)
	}
	return strings.Join(names, ", ")
}

func (p *parser) setup(s section) error {
	var names []string
	for _, one := range settings {
		names = append(names, one.name)
	}
	for _, l := range s.lines {
		if len(l.words) == 0 {
			continue
		}
		if _, err := (&cursor{words: l.words}).oneOf("word", names); err != nil {
			return err
		}
	}
	for _, one := range settings {
		for _, l := range s.lines {
			if len(l.words) == 0 || l.words[0].text != one.name {
				continue
			}
			c := &cursor{words: l.words, next: 1}
			if err := one.read(p, c); err != nil {
				return err
			}
			if err := c.end(); err != nil {
				return err
			}
		}
	}
	return nil
}

// once refuses what has been said before.
func (p *parser) once(w word, what string) error {
	if p.said[what] {
		return w.errorf("%s stands here a second time", what)
	}
	p.said[what] = true
	return nil
}

func (p *parser) start(l *cursor) error {
	if err := p.once(l.words[0], "start"); err != nil {
		return err
	}
	day, err := l.take("a date, for example 2026-03-02")
	if err != nil {
		return err
	}
	clock, err := l.take("a time, for example 14:00:00.000")
	if err != nil {
		return err
	}
	text := day.text + "T" + clock.text
	at, err := time.ParseInLocation(clockFormat, text, zone)
	if err != nil || !clockPattern.MatchString(text) {
		return day.errorf("%s %s is not a time such as 2026-03-02 14:00:00.000", day.text, clock.text)
	}
	p.x.Start = at
	return nil
}

func (p *parser) policy(l *cursor) error {
	var names []string
	for _, one := range policyLines {
		names = append(names, one.name)
	}
	at := l.here()
	name, err := l.oneOf("policy", names)
	if err != nil {
		return err
	}
	if err := p.once(at, "policy "+name); err != nil {
		return err
	}
	one := policyLines[slices.Index(names, name)]
	value, err := l.oneOf("value of the policy "+name, one.values)
	if err != nil {
		return err
	}
	one.set(&p.x.Policy, value)
	return nil
}

func (p *parser) stock(l *cursor) error {
	sku, err := l.take("a SKU, for example S1")
	if err != nil {
		return err
	}
	if !skuPattern.MatchString(sku.text) {
		return sku.errorf("%q is not a SKU such as S1", sku.text)
	}
	if err := p.once(sku, "stock "+sku.text); err != nil {
		return err
	}
	n, err := l.number("stock", maxStock)
	if err != nil {
		return err
	}
	if p.x.Stock == nil {
		p.x.Stock = map[string]int64{}
	}
	p.x.Stock[sku.text] = n
	return nil
}

const maxStock = 1_000_000

var (
	orderPattern = regexp.MustCompile(`^[A-Z][0-9]{0,6}$`)
	skuPattern   = regexp.MustCompile(`^S[0-9]{1,6}$`)
	wordPattern  = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
)

// order reads an order, or a range of orders that are alike.
func (p *parser) order(l *cursor) error {
	number, err := l.take("an order's number, for example A")
	if err != nil {
		return err
	}
	numbers, err := rangeOf(number)
	if err != nil {
		return err
	}
	rest := l.next
	for _, n := range numbers {
		l.next = rest
		if err := p.oneOrder(l, word{n, number.line, number.column}); err != nil {
			return err
		}
	}
	return nil
}

func (p *parser) oneOrder(l *cursor, number word) (err error) {
	if !orderPattern.MatchString(number.text) {
		return number.errorf("%q is not an order's number such as A or A17", number.text)
	}
	if err := p.once(number, "order "+number.text); err != nil {
		return err
	}
	o := NumberedOrder{number.text, Order{Channel: channelNames[0]}}
	if o.Cents, err = l.amount(); err != nil {
		return err
	}
	p.numbers = append(p.numbers, number)
	if err := p.orderDetails(l, &o); err != nil {
		return err
	}
	if o.SKU == number.text {
		return number.errorf("an order and a SKU can't both be called %s: steps are named by orders", number.text)
	}
	p.x.Orders = append(p.x.Orders, o)
	return nil
}

// orderDetails reads what an order may have: sku S1, quantity 2, and so on.
func (p *parser) orderDetails(l *cursor, o *NumberedOrder) error {
	for !l.done() {
		at := l.here()
		name, err := l.oneOf("word", []string{"sku", "quantity", "channel", "expires"})
		if err != nil {
			return err
		}
		if err := p.once(at, name+" of order "+o.Number); err != nil {
			return err
		}
		switch name {
		case "sku":
			if o.SKU, err = p.sku(l); o.Quantity == 0 {
				o.Quantity = 1
			}
		case "quantity":
			o.Quantity, err = l.number("quantity", maxStock)
		case "channel":
			o.Channel, err = l.oneOf("channel", channelNames)
		case "expires":
			err = p.expiresAt(l, o.Number)
		}
		if err != nil {
			return err
		}
	}
	if o.Quantity > 0 && o.SKU == "" {
		return l.words[0].errorf("order %s has a quantity, but no sku", o.Number)
	}
	return nil
}

func (p *parser) sku(l *cursor) (string, error) {
	sku, err := l.take("a SKU")
	if err != nil {
		return "", err
	}
	if _, own := p.x.Stock[sku.text]; !own && usualStock[sku.text] == 0 {
		return "", sku.errorf("there is no stock of %q; a line such as 'stock %s 10' puts some in", sku.text, sku.text)
	}
	return sku.text, nil
}

// expiresAt keeps an order's deadline until it is known when the order is created.
func (p *parser) expiresAt(l *cursor, number string) error {
	if p.expires == nil {
		p.expires = map[string]cursor{}
	}
	p.expires[number] = *l
	_, err := p.clock(l)
	return err
}

func (p *parser) mustFail(l *cursor) error {
	defect, err := l.take("a defect's name")
	if err != nil {
		return err
	}
	if !wordPattern.MatchString(defect.text) {
		return defect.errorf("%q is not a defect's name, such as close-without-condition", defect.text)
	}
	property, err := l.oneOf("property", append(propertyNames(), checker.Expected))
	if err != nil {
		return err
	}
	p.x.MustFail = append(p.x.MustFail, MustFail{defect.text, property, defect})
	return p.once(defect, "must-fail "+defect.text)
}

// shop reads one thing that all shops are configured to: shop scan-every 30s.
func (p *parser) shop(l *cursor) error {
	at := l.here()
	s, err := readSetting(l, "setting of the shops", shopSettings, shops{})
	if err != nil {
		return err
	}
	p.x.Shop = append(p.x.Shop, s)
	return p.once(at, "shop "+s.Name)
}

// channel reads that there is a channel, and how it differs from its kind.
func (p *parser) channel(l *cursor) error {
	at := l.here()
	name, err := l.oneOf("channel", channelNames)
	if err != nil {
		return err
	}
	if err := p.once(at, "channel "+name); err != nil {
		return err
	}
	c := ChannelSetup{Name: name}
	for !l.done() {
		at := l.here()
		s, err := readSetting(l, "setting of a channel", channelSettings, personality(name))
		if err != nil {
			return err
		}
		if err := p.once(at, s.Name+" of channel "+name); err != nil {
			return err
		}
		c.Settings = append(c.Settings, s)
	}
	p.x.Channels = append(p.x.Channels, c)
	return nil
}

// readSetting reads a name and a value, and tries it.
func readSetting[T any](l *cursor, what string, all []setting[T], try T) (s Setting, err error) {
	var names []string
	for _, one := range all {
		names = append(names, one.name)
	}
	if s.Name, err = l.oneOf(what, names); err != nil {
		return s, err
	}
	one := settingOf(all, s.Name)
	value, err := l.take("its value, for example " + one.example)
	if err != nil {
		return s, err
	}
	if err := one.set(&try, value.text); err != nil {
		return s, value.errorf("%s %v", s.Name, err)
	}
	s.Value = value.text
	return s, nil
}

// clockOf reads how a node's clock goes wrong: clock shop-1 ahead 20s.
func (p *parser) clockOf(l *cursor) error {
	node, err := p.node(l, "clock")
	if err != nil {
		return err
	}
	way, err := l.oneOf("way for a clock to be wrong", []string{"ahead", "behind"})
	if err != nil {
		return err
	}
	w, err := l.take("a duration, for example 20s")
	if err != nil {
		return err
	}
	var by time.Duration
	if err := durationTo(&by, w.text); err != nil {
		return w.errorf("%s %v", way, err)
	}
	if way == "behind" {
		by = -by
	}
	p.x.Clocks = append(p.x.Clocks, ClockSetup{Node: node, Ahead: by})
	return nil
}

// zoneOf reads which zone's time a node shows: zone shop-2 America/New_York.
func (p *parser) zoneOf(l *cursor) error {
	node, err := p.node(l, "zone")
	if err != nil {
		return err
	}
	name, err := l.take("a time zone, for example America/New_York")
	if err != nil {
		return err
	}
	if _, err := time.LoadLocation(name.text); err != nil || name.text == "Local" {
		return name.errorf("unknown time zone %q; there are those of the time zone database, such as America/New_York", name.text)
	}
	p.x.Clocks = append(p.x.Clocks, ClockSetup{Node: node, Zone: name.text})
	return nil
}

// node reads whose clock, or zone, a line is about.
func (p *parser) node(l *cursor, what string) (string, error) {
	at := l.here()
	nodes := slices.Concat(shopNames(p.x.Shop), p.nodesOf("stock"), p.nodesOf("channel"))
	node, err := l.oneOf("node", nodes)
	if err != nil {
		return "", err
	}
	return node, p.once(at, what+" "+node)
}
