module echoless-bench

go 1.24

require (
	echoless v0.0.0
	github.com/bits-and-blooms/bloom/v3 v3.7.1
)

require github.com/bits-and-blooms/bitset v1.24.2 // indirect

replace echoless => ../
