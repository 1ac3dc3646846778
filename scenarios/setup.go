package scenarios

import (
	"regexp"
	"slices"
	"time"
)

// settings are what a line of the setup may say, in the order in which they are read,
// wherever they stand: an order must know the start and the stock.
var settings = []struct {
	name string
	read func(*parser, *cursor) error
}{
	{"start", (*parser).start}, {"policy", (*parser).policy}, {"stock", (*parser).stock},
	{"order", (*parser).order}, {"must-fail", (*parser).mustFail},
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

func (p *parser) order(l *cursor) error {
	number, err := l.take("an order's number, for example A")
	if err != nil {
		return err
	}
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
	property, err := l.oneOf("property", propertyNames())
	if err != nil {
		return err
	}
	p.x.MustFail = append(p.x.MustFail, MustFail{defect.text, property})
	return p.once(defect, "must-fail "+defect.text)
}
