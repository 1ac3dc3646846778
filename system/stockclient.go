package system

import (
	"context"
	"errors"
)

// stockClient calls the stock service, which knows an order by its stock number. All its calls may be repeated.
type stockClient struct{ caller }

type stockRequest struct {
	OrderNo  string `json:"orderNo"`
	SKU      string `json:"sku,omitempty"`
	Quantity int64  `json:"quantity,omitempty"`
}

// errOutOfStock is the stock service's definite no.
var errOutOfStock = errors.New("out of stock")

// freeze promises the stock to the order: nil, errOutOfStock, or any other error when that isn't known. A stock number
// that was released is out of stock for ever.
func (c stockClient) freeze(ctx context.Context, stockNo, sku string, quantity int64) error {
	err := c.call(ctx, "/freeze", stockRequest{OrderNo: stockNo, SKU: sku, Quantity: quantity})
	if refusedAs(err, "out_of_stock", "order_released") {
		return errOutOfStock
	}
	return err
}

// release takes the promise back; a freeze that is still on its way will be refused.
func (c stockClient) release(ctx context.Context, stockNo string) error {
	return c.call(ctx, "/release", stockRequest{OrderNo: stockNo})
}

// refusedForGood reports whether the stock service has refused what contradicts its journal: no repeat changes that.
func refusedForGood(err error) bool { return refusedAs(err, "order_released", "order_deducted") }

// deduct turns the promise into a sale.
func (c stockClient) deduct(ctx context.Context, stockNo string) error {
	return c.call(ctx, "/deduct", stockRequest{OrderNo: stockNo})
}

func (c stockClient) call(ctx context.Context, path string, request stockRequest) error {
	var answer struct{}
	return c.post(ctx, c.cfg.StockURL, path, request, &answer)
}
