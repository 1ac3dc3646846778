package channel

import "time"

// Days of bills are Shanghai's for the Chinese channels. The zone has had no daylight saving since 1991, so a fixed
// offset is exact and needs no tables.
func shanghai() *time.Location { return time.FixedZone("Asia/Shanghai", 8*60*60) }

// chinaFeePPM is 0.6 percent.
const chinaFeePPM = 6000

// Mock is a channel for trying things out: punctual, and quick to resend.
func Mock() Personality {
	return Personality{
		Name:        "mock",
		FirstNotify: 200 * time.Millisecond,
		Resend: []time.Duration{
			2 * time.Second, 5 * time.Second, 15 * time.Second, 30 * time.Second,
			time.Minute, 3 * time.Minute, 10 * time.Minute, 30 * time.Minute,
		},
		AckTimeout:  5 * time.Second,
		PayingFor:   time.Minute,
		Close:       CloseAnswers{Unknown: codeNotExist, Paid: codeOrderPaid, Closed: codeOrderClosed, Paying: codeUserPaying},
		PartRefund:  stateRefund,
		FullRefund:  stateRefund,
		RefundTakes: time.Second,
		Zone:        shanghai(),
		FeePPM:      chinaFeePPM,
	}
}

// WechatLike resends for 24h4m in all, each first time from two servers, and reads nothing but the HTTP status: a 200
// that says FAIL is an ack.
func WechatLike() Personality {
	const s, m, h = time.Second, time.Minute, time.Hour
	return Personality{
		Name:        "wechat-like",
		FirstNotify: 200 * time.Millisecond,
		Resend: []time.Duration{
			15 * s, 15 * s, 30 * s, 3 * m, 10 * m, 20 * m, 30 * m, 30 * m, 30 * m, 60 * m, 3 * h, 3 * h, 3 * h, 6 * h, 6 * h,
		},
		Copies:      []time.Duration{400 * time.Millisecond},
		AckTimeout:  5 * time.Second,
		TokenLife:   2 * h,
		AutoClose:   14 * 24 * h,
		PayingFor:   time.Minute,
		Close:       CloseAnswers{Unknown: codeNotExist, Paid: codeOrderPaid, Closed: codeOrderClosed, Paying: codeUserPaying},
		PartRefund:  stateRefund,
		FullRefund:  stateRefund,
		RefundTakes: 3 * s,
		MaxRefunds:  50,
		RefundGap:   m,
		Zone:        shanghai(),
		FeePPM:      chinaFeePPM,
	}
}

// AlipayLike knows a trade only when the payer has scanned it, though its code can be paid all the time. An ack is the
// body "success" and nothing else. CLOSED may mean timed out, closed, or refunded in full.
func AlipayLike() Personality {
	const m, h = time.Minute, time.Hour
	return Personality{
		Name:           "alipay-like",
		FirstNotify:    300 * time.Millisecond,
		Resend:         []time.Duration{4 * m, 10 * m, 10 * m, h, 2 * h, 6 * h, 15 * h},
		AckTimeout:     5 * time.Second,
		AckBody:        "success",
		NotifiesClose:  true,
		RefundToPayURL: true,
		TradeOnScan:    true,
		AutoClose:      15 * 24 * h,
		PayingFor:      m,
		Close:          CloseAnswers{Unknown: codeNotExist, Paid: codeHasSuccess, Closed: codeStatusError, Paying: codeSystemError},
		PartRefund:     stateSuccess,
		FullRefund:     stateClosed,
		Zone:           shanghai(),
		FeePPM:         chinaFeePPM,
	}
}

// StripeLike resends for three days with growing waits, notifies failed tries too, and replays what it answered to an
// Idempotency-Key for a day, failures included.
func StripeLike() Personality {
	const m, h = time.Minute, time.Hour
	return Personality{
		Name:           "stripe-like",
		FirstNotify:    500 * time.Millisecond,
		Resend:         []time.Duration{m, 4 * m, 15 * m, h, 3 * h, 6 * h, 12 * h, 24 * h, 25 * h},
		AckTimeout:     10 * time.Second,
		NotifiesFailed: true,
		PayingFor:      m,
		Close:          CloseAnswers{Unknown: codeNotExist, Paid: codeOrderPaid, Closed: codeOrderClosed, Paying: codeUserPaying},
		PartRefund:     stateSuccess,
		FullRefund:     stateSuccess,
		RefundTakes:    2 * time.Second,
		KeyLife:        24 * h,
		Zone:           time.UTC,
		FeePPM:         29_000,
		KeepsFees:      true,
	}
}

// Personalities lists all that there are.
func Personalities() []Personality {
	return []Personality{Mock(), WechatLike(), AlipayLike(), StripeLike()}
}
