package main

import (
	"encoding/json"
	"fmt"
	"net"
	"time"
)

// status is what of an agent's answer to {"verb":"status"} is shown.
type status struct {
	Fabric   string `json:"fabric"`
	Reported struct {
		Node   uint32
		Alarms []alarm
	} `json:"reported"`
	Bundles []struct {
		Bundle   int      `json:"bundle"`
		Machine  string   `json:"machine"`
		Ready    bool     `json:"ready"`
		Path     string   `json:"path"`
		State    string   `json:"state"`
		Lit      []string `json:"lit"`
		Expected *int32   `json:"expected_mdbm"`
		Measured *int32   `json:"measured_mdbm"`
		Reason   string   `json:"reason"`
	} `json:"bundles"`
	Samples []sample `json:"samples"`
}

type alarm struct {
	Severity, Bundle int
	SinceMicros      uint64
	Text             string
}

// sample is a reading of a module; only cases are shown one by one.
type sample struct{ Bundle, Module, Sensor, Value int }

const (
	sensorCase = 1 // millikelvin
	// What a sensor's value means to the agent: ocs.ErrTooHot, proto.LeastLightBelow, and
	// what a verification tells.
	hotCelsius, warmCelsius     = 75, 70 // the agent's limit; chosen: 5 K before it
	failDecibel, degradeDecibel = 3.0, 0.4
	answersWithin               = 5 * time.Second
)

// ask asks the agent behind a socket how it stands.
func ask(socket string) (*status, error) {
	conn, err := net.DialTimeout("unix", socket, answersWithin)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(answersWithin))
	if _, err := conn.Write([]byte(`{"verb":"status"}` + "\n")); err != nil {
		return nil, err
	}
	var answer struct {
		Error  *struct{ Reason string } `json:"error"`
		Status *status                  `json:"status"`
	}
	if err := json.NewDecoder(conn).Decode(&answer); err != nil {
		return nil, err
	}
	if answer.Status == nil {
		return nil, fmt.Errorf("agent at %s: no status: %v", socket, answer.Error)
	}
	return answer.Status, nil
}
