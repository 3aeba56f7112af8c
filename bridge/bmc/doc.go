// Command ocs-bmc shows the optics of a node on its controller's D-Bus, in the form of
// OpenBMC, which bmcweb serves as Redfish: the node is a FabricAdapter, each external path
// of a bundle a Port, its fibre a Cable, each module an Item, its case and the light of a
// bundle sensors with thresholds. It reads the socket of ocs-agent and changes nothing.
// Where there is no bus it ends at once, and well.
//
// It is a module and a program of its own: no line of a D-Bus library is in the agent.
package main
