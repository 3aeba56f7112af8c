module ringlight/bridge/tinygo

go 1.26.0

require (
	periph.io/x/conn/v3 v3.7.2
	ringlight v0.0.0
	tinygo.org/x/drivers v0.33.0
)

require (
	github.com/fxamacker/cbor/v2 v2.9.6 // indirect
	github.com/google/shlex v0.0.0-20191202100458-e7afc7fbc510 // indirect
	github.com/x448/float16 v0.8.4 // indirect
)

replace ringlight => ../..
