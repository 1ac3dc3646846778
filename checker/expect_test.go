package checker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/checker"
	"github.com/tillstorm/tillstorm/sim"
)

// paidOnce is a run in which A is paid, one callback is delivered twice, and B is closed.
const paidOnce = `
	S1 is-stocked 10
	A is-created 198.00 S1
	A is-frozen S1
	B is-created 5.00
	A is-charged T1 198.00
	callback(A)#1 sent T1 198.00
	callback(A)#1 commits record T1 A 198.00 applied, order A PAID, log A CREATED>PAID, message stock-deduct A
	callback(A)#1 answers 200 PAID
	callback(A)#2 sent T1 198.00
	callback(A)#2 answers 200 CLOSED
	A is-sold S1
	B is-closed`

// expecting is an expectation of something that happens so often.
func expecting(of checker.Subject, about, what string, count int) checker.Expectation {
	return checker.Expectation{Where: "f.txtar:9", Text: "that", Subject: of, About: about, What: what, Claim: checker.Happens, Count: count}
}

func TestExpectations(t *testing.T) {
	is := func(of checker.Subject, about, what string) checker.Expectation {
		return checker.Expectation{Where: "f.txtar:9", Text: "that", Subject: of, About: about, What: what, Claim: checker.Is}
	}
	stays := func(about, what string) checker.Expectation {
		x := is(checker.OfOrder, about, what)
		x.Claim = checker.Stays
		return x
	}
	levels := func(available, frozen, sold int64) checker.Expectation {
		return checker.Expectation{
			Where: "f.txtar:9", Text: "that", Subject: checker.OfStock, About: "S1", Claim: checker.HasLevels,
			Levels: checker.Levels{Available: available, Frozen: frozen, Sold: sold},
		}
	}
	with := func(x checker.Expectation, change func(*checker.Expectation)) checker.Expectation {
		change(&x)
		return x
	}
	const hour = time.Hour
	for _, one := range []struct {
		name           string
		legal, illegal checker.Expectation
		but            string
	}{
		{"is", is(checker.OfOrder, "A", "PAID"), is(checker.OfOrder, "A", "CLOSED"), `it is PAID since \S+ \(198\.00 CNY\)`},
		{"is by a time", is(checker.OfOrder, "A", "PAID"), with(is(checker.OfOrder, "A", "PAID"), func(x *checker.Expectation) { x.By = 1 }), "it is nothing since"},
		{"stays", stays("B", "CLOSED"), stays("A", "CREATED"), "it became PAID at"},
		{"stays what it never was", stays("A", "PAID"), stays("A", "REFUNDED"), "it never was REFUNDED: it is PAID since"},
		{"stays, of nothing", stays("A", "PAID"), stays("C", "PAID"), "there is none"},
		{"becomes", expecting(checker.OfOrder, "A", "PAID", 1), expecting(checker.OfOrder, "A", "PAID", 2), "there was 1: PAID at"},
		{"charge", expecting(checker.OfCharge, "A", "", 1), expecting(checker.OfCharge, "A", "", 0), `there was 1: at \S+ \(198\.00 CNY\)`},
		{"amount", with(expecting(checker.OfCharge, "A", "", 1), func(x *checker.Expectation) { x.Cents = 198_00 }),
			with(expecting(checker.OfCharge, "A", "", 1), func(x *checker.Expectation) { x.Cents = 1 }), "there was none; there was at"},
		{"record", expecting(checker.OfRecord, "A", "applied", 1), expecting(checker.OfRecord, "A", "late", 1), "there was none; there was applied at"},
		{"refund", expecting(checker.OfRefund, "A", "", 0), expecting(checker.OfRefund, "A", "", 1), "there was none"},
		{"stock", expecting(checker.OfStock, "A", "deduct", 1), expecting(checker.OfStock, "A", "release", 1), "there was none; there was freeze at"},
		{"levels", levels(9, 0, 1), levels(10, 0, 0), "it is available 9 frozen 0 sold 1"},
		{"answers", with(expecting(checker.OfAnswer, "A", "callback", 2), func(x *checker.Expectation) { x.Also = "200" }),
			with(expecting(checker.OfAnswer, "A", "callback", 2), func(x *checker.Expectation) { x.Equal = true }), `at \S+ it said 200 \{.*PAID.*\}, and at \S+ 200 \{.*CLOSED.*\}`},
		{"requests", expecting(checker.OfRequest, "A", "callback", 2), expecting(checker.OfRequest, "A", "callback", 0), "there were 2: callback at"},
		{"after", with(expecting(checker.OfCharge, "A", "", 1), func(x *checker.Expectation) { x.After = 1 }),
			with(expecting(checker.OfCharge, "A", "", 1), func(x *checker.Expectation) { x.After = hour }), `it happened at \S+ \(198\.00 CNY\)`},
		{"by", with(expecting(checker.OfCharge, "A", "", 1), func(x *checker.Expectation) { x.By = hour }),
			with(expecting(checker.OfCharge, "A", "", 1), func(x *checker.Expectation) { x.By = 1 }), "it happened at"},
		{"never after", with(expecting(checker.OfCharge, "A", "", 0), func(x *checker.Expectation) { x.After = hour }),
			with(expecting(checker.OfCharge, "A", "", 0), func(x *checker.Expectation) { x.After = 1 }), "there was 1: at"},
	} {
		assert.Empty(t, judgeExpectation(t, one.legal), one.name)
		failures := judgeExpectation(t, one.illegal)
		if assert.Len(t, failures, 1, one.name) {
			assert.Regexp(t, `^expect: f\.txtar:9: expected that, but `+one.but, failures[0].Error(), one.name)
			assert.Equal(t, checker.Expected, failures[0].Property)
		}
	}
}

// An expectation is about one order's money: its own amount, or its order's price.
func TestExpectationsHaveStakes(t *testing.T) {
	x := expecting(checker.OfRefund, "A", "", 1)
	assert.Equal(t, "198.00 CNY", judgeExpectation(t, x)[0].Stake.String())
	x.Cents = 98_00
	f := judgeExpectation(t, x)[0]
	assert.Equal(t, "98.00 CNY", f.Stake.String())
	assert.Equal(t, "expect | refund happens", f.Fingerprint())
}

func judgeExpectation(t *testing.T, x checker.Expectation) []checker.Failure {
	trace := &sim.Trace{}
	evidence := checker.New(trace).Judge()
	evidence.Expect([]checker.Expectation{x})
	require.NoError(t, newTeller(trace).tell(paidOnce))
	failures, _ := evidence.Finish()
	return failures
}
