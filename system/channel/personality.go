package channel

import (
	"slices"
	"time"
)

// Personality is how one kind of channel behaves, as data.
type Personality struct {
	Name        string
	FirstNotify time.Duration   // from the charge to the first notification
	Resend      []time.Duration // waits after each missing ack; after the last one the channel gives up
	AckTimeout  time.Duration   // for the merchant to acknowledge
	AckBody     string          // the body that acknowledges, exactly; empty: any 2xx does, whatever its body says
}

// Mock is a channel for trying things out: punctual, and quick to resend.
func Mock() Personality {
	return Personality{
		Name:        "mock",
		FirstNotify: 200 * time.Millisecond,
		Resend: []time.Duration{
			2 * time.Second, 5 * time.Second, 15 * time.Second, 30 * time.Second,
			time.Minute, 3 * time.Minute, 10 * time.Minute, 30 * time.Minute,
		},
		AckTimeout: 5 * time.Second,
	}
}

// WechatLike resends for 24h4m in all, and reads nothing but the HTTP status: a 200 that says FAIL is an ack.
func WechatLike() Personality {
	const s, m, h = time.Second, time.Minute, time.Hour
	return Personality{
		Name:        "wechat-like",
		FirstNotify: 200 * time.Millisecond,
		Resend: []time.Duration{
			15 * s, 15 * s, 30 * s, 3 * m, 10 * m, 20 * m, 30 * m, 30 * m, 30 * m, 60 * m, 3 * h, 3 * h, 3 * h, 6 * h, 6 * h,
		},
		AckTimeout: 5 * time.Second,
	}
}

// Personalities lists all that there are.
func Personalities() []Personality { return []Personality{Mock(), WechatLike()} }

// acked reports whether an answer of the merchant acknowledges a notification.
func (p Personality) acked(status int, body []byte) bool {
	if p.AckBody != "" {
		return status == 200 && string(body) == p.AckBody
	}
	return status >= 200 && status < 300
}

// resendAfter is the wait after the n-th missing ack (n counts from 1); false when the channel gives up.
func (p Personality) resendAfter(n int) (time.Duration, bool) {
	if n < 1 || n > len(p.Resend) {
		return 0, false
	}
	return p.Resend[n-1], true
}

func (p Personality) valid() bool {
	waits := append(slices.Clone(p.Resend), p.AckTimeout)
	return p.Name != "" && p.FirstNotify >= 0 && slices.Min(waits) > 0
}
