module ringlight/bridge/cose

go 1.26.0

require (
	github.com/veraison/go-cose v1.3.0
	ringlight v0.0.0
)

require (
	github.com/fxamacker/cbor/v2 v2.9.6 // indirect
	github.com/x448/float16 v0.8.4 // indirect
)

replace ringlight => ../..
