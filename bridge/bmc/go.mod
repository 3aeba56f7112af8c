module ringlight/bridge/bmc

go 1.26.0

require github.com/godbus/dbus/v5 v5.2.4

require golang.org/x/sys v0.27.0 // indirect
