// Package gnmi serves a planner to collectors and controllers that speak gNMI 0.10: what
// there is (Capabilities), how it is (Get), what becomes of it (Subscribe), and acts of
// operators (Set). docs/gnmi.md has it for its users.
//
// The tree is that of three models: ringlight-fabric.yang, beside this file; OpenConfig's
// components; and, of the target switch-N, sonic-ocs. What is published is what is served:
// paths are judged by the text of the models.
//
// Nobody who subscribes is in the planner's goroutine. A mirror looks every few
// milliseconds, and only while somebody streams, which nodes and rings have changed; what
// differs is one record, from which all streams read at their own pace. Who falls behind
// by more records than are kept is sent away.
//
// It never decides: an act goes through the operators' door, with the name in the
// certificate and the rights that the trust document gives it. It is never in an agent.
package gnmi
