package sonic

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Dialect is how a box says how it is.
type Dialect string

const (
	Auto   Dialect = "auto" // found out at each connection
	Tables Dialect = "tables"
	States Dialect = "states"
)

// What is served, below the root of RESTCONF.
const (
	root       = "/restconf/data/"
	module     = "sonic-ocs:sonic-ocs"
	states     = "sonic-ocs-states:sonic-ocs-states"
	records    = "ringlight-records:ringlight-records"
	quarters   = "QUARTERS"
	days       = "DAYS"
	bulkUpdate = "/restconf/operations/sonic-ocs:bulk-update"
	mediaType  = "application/yang-data+json"
)

// Override is what a port is told whatever its connection is.
const (
	normal       = "normal"
	forceBlocked = "force_blocked"
	poweredOff   = "powered_off"
)

// Words for the light of a port, and of a connection of tables.
const (
	connected = "connected" // tables
	tuned     = "tuned"     // states
	tuning    = "tuning"
	blocked   = "blocked"
	failed    = "failed"
	enabled   = "enabled"
	disabled  = "disabled"
	invalid   = "invalid"
)

// portConfig is a port as it is wanted. Tables have ConfigStatus, states State.
type portConfig struct {
	ID           string  `json:"simplex_port_id"`
	Label        *string `json:"label,omitempty"`
	ConfigStatus string  `json:"config_status,omitempty"`
	State        string  `json:"state,omitempty"`
}

// portState is a port as it is. Tables have OperStatus, states Status.
type portState struct {
	ID            string `json:"simplex_port_id"`
	ConnectorType string `json:"connector_type,omitempty"`
	ConnectorPin  string `json:"connector_pin,omitempty"`
	Target        string `json:"target_simplex_port_id,omitempty"`
	OperStatus    string `json:"oper_status,omitempty"`
	Status        string `json:"status,omitempty"`
}

// Connection is one as it is wanted.
type Connection struct {
	ID string `json:"cross_connect_id"`
	A  string `json:"a_side,omitempty"`
	B  string `json:"b_side,omitempty"`
}

// connectionState is one as it is. Tables have Status and Loss, states the rest.
type connectionState struct {
	ID      string  `json:"cross_connect_id"`
	Status  string  `json:"status,omitempty"`
	Loss    decimal `json:"insertion_loss_dB,omitempty"`
	A       string  `json:"a_side,omitempty"`
	B       string  `json:"b_side,omitempty"`
	AStatus string  `json:"a_side_status,omitempty"`
	BStatus string  `json:"b_side_status,omitempty"`
}

// FactoryLoss is what a path lost at its maker's.
type FactoryLoss struct {
	ID          string  `json:"cross_connect_id"`
	Frequency   decimal `json:"frequency_THz"`
	Temperature decimal `json:"temperature_C"`
	Loss        decimal `json:"loss_dB"`
}

// bulk is what bulk-update is told.
type bulk struct {
	Delete []string     `json:"delete,omitempty"`
	Add    []Connection `json:"add,omitempty"`
}

// bulkResult is its answer.
type bulkResult struct {
	Deleted int      `json:"deleted_count"`
	Added   int      `json:"added_count"`
	Failed  []string `json:"failed_keys,omitempty"`
}

// restError is an error of RESTCONF.
type restError struct {
	Type    string `json:"error-type"`
	Tag     string `json:"error-tag"`
	Path    string `json:"error-path,omitempty"`
	Message string `json:"error-message"`
}

// restErrors are those of one answer.
type restErrors struct {
	Errors struct {
		List []restError `json:"error"`
	} `json:"ietf-restconf:errors"`
}

// decimal is a decimal64, which JSON has as a string; some boxes write a number.
type decimal string

// UnmarshalJSON takes either.
func (d *decimal) UnmarshalJSON(b []byte) error {
	var n json.Number
	err := json.Unmarshal(b, &n) // which takes a string that is a number
	*d = decimal(n)
	return err
}

// portName is a port as the field calls it: 1A, 17B.
func portName(side, port int) string { return strconv.Itoa(port+1) + string("AB"[side]) }

// parsePort reads one.
func parsePort(name string) (side, port int, ok bool) {
	if len(name) < 2 || name[0] == '0' || name[0] == '+' {
		return 0, 0, false
	}
	n, err := strconv.ParseUint(name[:len(name)-1], 10, 16)
	side = strings.IndexByte("AB", name[len(name)-1])
	return side, int(n) - 1, err == nil && n > 0 && side >= 0
}

// Ports are those of a connection, counted from 0, of its key where it names none.
func (c *Connection) Ports() (a, b int, err error) {
	from, to := c.A, c.B
	if from == "" && to == "" {
		from, to, _ = strings.Cut(c.ID, "-")
	}
	sideA, a, okA := parsePort(from)
	sideB, b, okB := parsePort(to)
	if !okA || !okB || sideA != 0 || sideB != 1 {
		return 0, 0, fmt.Errorf("connection %.40q from %.20q to %.20q: want ports such as 1A and 17B", c.ID, from, to)
	}
	return a, b, nil
}
