package faults

import (
	"fmt"
	"slices"
	"strings"
)

// What a payment channel does to a trade, or to a day's bill. How, is up to the hands
// of the world; the words are those of the channels' documentation.
const (
	UnknownOutcome Kind = "unknown-outcome"
	ChannelError   Kind = "channel-error"
	RateLimit      Kind = "rate-limit"
	LateSettlement Kind = "late-settlement"
	QueryLag       Kind = "query-lag"
	NotFoundYet    Kind = "not-found-yet"
	PaidAtClose    Kind = "paid-at-close"
	RepeatedNotice Kind = "repeated-notice"
	DisorderNotice Kind = "disordered-notice"
	Silence        Kind = "no-notice"
	ChargeUntold   Kind = "charge-untold"
	FewNotices     Kind = "few-notices"
	TradeUnnamed   Kind = "trade-unnamed"
	FailedFirst    Kind = "failed-first"
	RefundAbnormal Kind = "refund-abnormal"
	RefundClosed   Kind = "refund-closed"
	BillLate       Kind = "bill-late"
	BillMissing    Kind = "bill-row-missing"
	BillExtra      Kind = "bill-row-extra"
	BillWrong      Kind = "bill-row-wrong"
	BillMisfiled   Kind = "bill-row-misfiled"
	BackMissing    Kind = "bill-refund-missing"
	BackExtra      Kind = "bill-refund-extra"
	BackWrong      Kind = "bill-refund-wrong"
	BackMisfiled   Kind = "bill-refund-misfiled"
	SameNumber     Kind = "same-number"
)

var (
	request = param{word: "at", field: fieldText, form: "PATH", mistake: pathMistake} // of the requests concerned
	paths   = []string{"/prepay", "/query", "/close", "/refund"}

	misfiled = param{word: "in", field: fieldText, form: "PART", mistake: partMistake} // of the bill's row
	parts    = []string{"trade", "order", "currency"}

	// Channels count in milliseconds: less does nothing.
	later  = duration("by", fieldBy, ms, day)
	awhile = duration("for", fieldFor, ms, day)
)

func pathMistake(path string) string {
	if !slices.Contains(paths, path) {
		return fmt.Sprintf("unknown path %q; there are %s", path, strings.Join(paths, ", "))
	}
	return ""
}

func partMistake(part string) string {
	if !slices.Contains(parts, part) {
		return fmt.Sprintf("unknown part %q of a bill's row; there are %s", part, strings.Join(parts, ", "))
	}
	return ""
}

var channelKinds = []spec{
	{
		name: UnknownOutcome, sentence: "the channel does what it is asked, and answers with an error",
		verb: "loses-reply", anchor: atTrade, params: []param{request, times}, choices: paths,
	},
	{
		name: ChannelError, sentence: "the channel answers with an error, and does nothing",
		verb: "errs", anchor: atTrade, params: []param{request, times}, choices: paths,
	},
	{
		name: RateLimit, sentence: "the channel answers that it is asked too often, and does nothing",
		verb: "limits", anchor: atTrade, params: []param{request, times}, choices: paths,
	},
	{
		name: LateSettlement, sentence: "the money is taken later than the buyer has confirmed",
		verb: "settles-late", anchor: atTrade, params: []param{later},
	},
	{
		name: QueryLag, sentence: "a query says for a while that a trade is not paid, though it is",
		verb: "lags", anchor: atTrade, params: []param{awhile},
	},
	{
		name: NotFoundYet, sentence: "a query says for a while that it knows of no such trade",
		verb: "hides", anchor: atTrade, params: []param{awhile},
	},
	{
		name: PaidAtClose, sentence: "no query says that a trade is paid, until closing it is answered so",
		verb: "tells-at-close", anchor: atTrade,
	},
	{
		name: RepeatedNotice, sentence: "the channel sends further copies of each notification at the same time",
		verb: "repeats", anchor: atTrade, params: []param{times},
	},
	{
		name: DisorderNotice, sentence: "the notification of the charge comes after those of what followed",
		verb: "disorders", anchor: atTrade, params: []param{later},
	},
	{
		name: Silence, sentence: "the channel never notifies",
		verb: "keeps-silent", anchor: atTrade,
	},
	{
		name: ChargeUntold, sentence: "the channel never notifies of the charge, and does of what follows",
		verb: "conceals-charge", anchor: atTrade,
	},
	{
		name: FewNotices, sentence: "the channel sends each notification so many times at most, heard or not",
		verb: "sends-at-most", anchor: atTrade, params: []param{times},
	},
	{
		name: TradeUnnamed, sentence: "the channel's notifications name the order, and none of its trades",
		verb: "names-no-trade", anchor: atTrade,
	},
	{
		name: FailedFirst, sentence: "the buyer's first try to pay fails, and a later one succeeds",
		verb: "declines-first", anchor: atTrade,
	},
	{
		name: RefundAbnormal, sentence: "a refund that was accepted does not reach the buyer until a person looks at it",
		verb: "upsets-refund", anchor: atTrade, params: []param{duration("after", fieldFor, ms, day)},
	},
	{
		name: RefundClosed, sentence: "a refund that was accepted is closed by the channel, and no money moves",
		verb: "closes-refund", anchor: atTrade, params: []param{duration("after", fieldFor, ms, day)},
	},
	{
		name: BillLate, sentence: "a day's bill is ready later",
		verb: "delays-bill", anchor: atDay, params: []param{later},
	},
	{
		name: BillMissing, sentence: "the bill lacks a trade's charge",
		verb: "omits-row", anchor: atTrade,
	},
	{
		name: BillExtra, sentence: "the bill has a charge that never was",
		verb: "invents-row", anchor: atTrade, params: []param{cents},
	},
	{
		name: BillWrong, sentence: "the bill has another amount for a trade's charge",
		verb: "misstates-row", anchor: atTrade, params: []param{cents},
	},
	{
		name: BillMisfiled, sentence: "the bill has another trade, order or currency for a trade's charge",
		verb: "misfiles-row", anchor: atTrade, params: []param{misfiled}, choices: parts,
	},
	{
		name: BackMissing, sentence: "the bill lacks a trade's first refund",
		verb: "omits-refund", anchor: atTrade,
	},
	{
		name: BackExtra, sentence: "the bill has a refund that never was",
		verb: "invents-refund", anchor: atTrade, params: []param{cents},
	},
	{
		name: BackWrong, sentence: "the bill has another amount for a trade's first refund",
		verb: "misstates-refund", anchor: atTrade, params: []param{cents},
	},
	{
		name: BackMisfiled, sentence: "the bill has another trade, order or currency for a trade's first refund",
		verb: "misfiles-refund", anchor: atTrade, params: []param{misfiled}, choices: parts,
	},
	{
		name: SameNumber, sentence: "a charge has the transaction number that another channel has used",
		verb: "numbers", anchor: atTrade, params: []param{{word: "as", field: fieldText, form: formTrade}},
	},
}
