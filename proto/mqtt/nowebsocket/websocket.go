// Package websocket stands in for the library of that name, which the MQTT client and
// broker link for MQTT over WebSocket. Nothing here speaks that; the library would be
// half a megabyte of an agent's flash, with all of HTTP behind it.
//
// It has what those two packages name, and refuses to connect.
package websocket

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

// ErrLeftOut is what every connection ends with.
var ErrLeftOut = errors.New("websocket: MQTT over WebSocket is left out of this build")

// BinaryMessage is the type of a message of MQTT.
const BinaryMessage = 2

// Conn is a connection that never is.
type Conn struct{ net.Conn }

// NextReader refuses.
func (c *Conn) NextReader() (int, io.Reader, error) { return 0, nil, ErrLeftOut }

// WriteMessage refuses.
func (c *Conn) WriteMessage(int, []byte) error { return ErrLeftOut }

// UnderlyingConn is none.
func (c *Conn) UnderlyingConn() net.Conn { return nil }

// SetReadDeadline refuses.
func (c *Conn) SetReadDeadline(time.Time) error { return ErrLeftOut }

// SetWriteDeadline refuses.
func (c *Conn) SetWriteDeadline(time.Time) error { return ErrLeftOut }

// Dialer refuses to dial.
type Dialer struct {
	Proxy                           func(*http.Request) (*url.URL, error)
	HandshakeTimeout                time.Duration
	EnableCompression               bool
	TLSClientConfig                 *tls.Config
	Subprotocols                    []string
	ReadBufferSize, WriteBufferSize int
}

// Dial refuses.
func (*Dialer) Dial(string, http.Header) (*Conn, *http.Response, error) { return nil, nil, ErrLeftOut }

// Upgrader refuses to upgrade.
type Upgrader struct {
	Subprotocols []string
	CheckOrigin  func(*http.Request) bool
}

// Upgrade refuses.
func (*Upgrader) Upgrade(http.ResponseWriter, *http.Request, http.Header) (*Conn, error) {
	return nil, ErrLeftOut
}
