SEEDS ?= 1-2000
PROFILE ?= storm

.PHONY: test sweep lint bench defects fmt

test: ## all tests
	go test -timeout 30m ./...

sweep: ## many seeds: make sweep SEEDS=1-5000
	go run ./cmd/tillstorm sweep --seeds $(SEEDS) --profile $(PROFILE)

lint: ## formatting, vet, staticcheck, import directions and banned calls
	@unformatted=$$(gofmt -l .); test -z "$$unformatted" || { echo "gofmt -w these files:"; echo "$$unformatted"; exit 1; }
	go vet ./...
	go tool staticcheck ./...
	go test -count=1 -run 'TestLayers' ./scenarios

bench: ## steps per second, cost per step, ratio to bare SQL
	go test -run '^$$' -bench . -benchmem ./sim ./scenarios

defects: ## plant every defect, and write down how soon it is found
	go run ./cmd/tillstorm defects --page docs/defects.md

fmt:
	gofmt -w .
