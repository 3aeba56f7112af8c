package live

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"ringlight/proto"
	"ringlight/proto/mqtt"
)

// Reconnecting in the demo is not spread over a minute: its 64 nodes storm
// nobody. chosen.
const (
	minReconnect = 50 * time.Millisecond
	maxReconnect = 2 * time.Second
)

// nodeQueue bounds what waits for a node. chosen: 64 nodes in one process.
const nodeQueue = 1024

// dial gives a node its link, with its death note as the will.
func dial(cfg mqtt.Config, fabric string, node proto.NodeID, session proto.Session) (*mqtt.Link, error) {
	note, err := proto.Encode(&proto.Presence{Version: proto.Version, Node: node, Session: session})
	if err != nil {
		return nil, err
	}
	cfg.ClientID = fabric + "-n" + strconv.FormatUint(uint64(node), 10)
	cfg.Will = &proto.Packet{Kind: proto.Publish, Topic: proto.Topics{Fabric: fabric}.Presence(node),
		Payload: note, QoS: proto.TopicPresence.QoS(), Retain: proto.TopicPresence.Retain()}
	cfg.Ordered, cfg.Intake, cfg.Queue = true, mqtt.DefaultIntake, nodeQueue
	return mqtt.Dial(cfg)
}

// progressTo tells how far something is, on one line that is written over.
func progressTo(w io.Writer, what string) func(done, of int) {
	return func(done, of int) {
		if w == nil {
			return
		}
		end := "\r"
		if done == of {
			end = "\n"
		}
		fmt.Fprintf(w, "%d of %d %s%s", done, of, what, end)
	}
}
