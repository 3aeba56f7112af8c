package main

import (
	"fmt"
	"maps"
	"math"
	"path"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/godbus/dbus/v5"
	"github.com/godbus/dbus/v5/introspect"
	"github.com/godbus/dbus/v5/prop"
)

// busName begins as bmcweb's mapper wants it.
const busName = "xyz.openbmc_project.Ringlight"

const (
	propertiesOf   = "org.freedesktop.DBus.Properties"
	managerOf      = "org.freedesktop.DBus.ObjectManager"
	introspectable = "org.freedesktop.DBus.Introspectable"
)

// managed are where an ObjectManager is: bmcweb asks those of sensors and inventory.
var managed = []dbus.ObjectPath{inventory, sensors, alarms}

// bus has the objects on a bus. Its methods with a *dbus.Error are what others call.
type bus struct {
	conn *dbus.Conn
	mu   sync.Mutex
	all  objects
}

// object answers for one path.
type object struct {
	*bus
	at dbus.ObjectPath
}

func newBus(conn *dbus.Conn) (*bus, error) {
	b := &bus{conn: conn, all: objects{}}
	for _, at := range managed {
		if err := b.export(at); err != nil {
			return nil, err
		}
		if err := conn.Export(object{b, at}, at, managerOf); err != nil {
			return nil, err
		}
	}
	reply, err := conn.RequestName(busName, dbus.NameFlagDoNotQueue)
	if err == nil && reply != dbus.RequestNameReplyPrimaryOwner {
		err = fmt.Errorf("another program has the name %s", busName)
	}
	return b, err
}

// export answers for a path and for those above it, which only lead there.
func (b *bus) export(at dbus.ObjectPath) error {
	for ; ; at = dbus.ObjectPath(path.Dir(string(at))) {
		x := object{b, at}
		for _, iface := range []string{propertiesOf, introspectable} {
			if err := b.conn.Export(x, at, iface); err != nil {
				return err
			}
		}
		if at == "/" {
			return nil
		}
	}
}

// put shows objects in place of those of before, and tells what differs.
func (b *bus) put(all objects) error {
	b.mu.Lock()
	was := b.all
	b.all = all
	b.mu.Unlock()
	for at, x := range all {
		before, known := was[at]
		if !known {
			if err := b.export(at); err != nil {
				return err
			}
			b.tell(at, "InterfacesAdded", at, variants(x))
			continue
		}
		for iface, props := range x {
			changed := map[string]dbus.Variant{}
			for name, v := range props {
				if !same(before[iface][name], v) {
					changed[name] = dbus.MakeVariant(v)
				}
			}
			if len(changed) > 0 {
				b.conn.Emit(at, propertiesOf+".PropertiesChanged", iface, changed, []string{})
			}
		}
	}
	for at, x := range was {
		if all[at] == nil {
			for _, iface := range []string{propertiesOf, introspectable} {
				b.conn.Export(nil, at, iface)
			}
			b.tell(at, "InterfacesRemoved", at, slices.Collect(maps.Keys(x)))
		}
	}
	return nil
}

// same: NaN is what NaN was.
func same(a, b any) bool {
	x, is := a.(float64)
	y, too := b.(float64)
	return is && too && math.IsNaN(x) && math.IsNaN(y) || reflect.DeepEqual(a, b)
}

// tell sends a signal from the manager above a path.
func (b *bus) tell(at dbus.ObjectPath, signal string, args ...any) {
	for _, m := range managed {
		if strings.HasPrefix(string(at), string(m)+"/") {
			b.conn.Emit(m, managerOf+"."+signal, args...)
		}
	}
}

func variants(x interfaces) map[string]map[string]dbus.Variant {
	out := map[string]map[string]dbus.Variant{}
	for iface, props := range x {
		out[iface] = map[string]dbus.Variant{}
		for name, v := range props {
			out[iface][name] = dbus.MakeVariant(v)
		}
	}
	return out
}

// GetManagedObjects tells all below.
func (x object) GetManagedObjects() (map[dbus.ObjectPath]map[string]map[string]dbus.Variant, *dbus.Error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	out := map[dbus.ObjectPath]map[string]map[string]dbus.Variant{}
	for at, ifaces := range x.all {
		if strings.HasPrefix(string(at), string(x.at)+"/") {
			out[at] = variants(ifaces)
		}
	}
	return out, nil
}

// Get tells one property.
func (x object) Get(iface, name string) (dbus.Variant, *dbus.Error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	v, known := x.all[x.at][iface][name]
	if !known {
		return dbus.Variant{}, dbus.NewError("org.freedesktop.DBus.Error.UnknownProperty", []any{iface + "." + name + ": there is none at " + string(x.at)})
	}
	return dbus.MakeVariant(v), nil
}

// GetAll tells all properties of an interface; of "", which bmcweb asks of a sensor, those
// of all interfaces.
func (x object) GetAll(iface string) (map[string]dbus.Variant, *dbus.Error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	all := variants(x.all[x.at])
	if iface != "" {
		return all[iface], nil
	}
	out := map[string]dbus.Variant{}
	for _, props := range all {
		maps.Copy(out, props)
	}
	return out, nil
}

// Set refuses: who wants light otherwise asks the agent or the planner.
func (x object) Set(iface, name string, _ dbus.Variant) *dbus.Error {
	return dbus.NewError("org.freedesktop.DBus.Error.PropertyReadOnly", []any{iface + "." + name + ": it is read only"})
}

// Introspect tells what is at a path, and what below.
func (x object) Introspect() (string, *dbus.Error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	n := introspect.Node{Name: string(x.at), Interfaces: []introspect.Interface{introspect.IntrospectData,
		prop.IntrospectData}}
	for iface, props := range x.all[x.at] {
		shown := introspect.Interface{Name: iface}
		for name, v := range props {
			shown.Properties = append(shown.Properties, introspect.Property{Name: name, Type: dbus.SignatureOf(v).String(), Access: "read"})
		}
		slices.SortFunc(shown.Properties, func(a, b introspect.Property) int { return strings.Compare(a.Name, b.Name) })
		n.Interfaces = append(n.Interfaces, shown)
	}
	slices.SortFunc(n.Interfaces, func(a, b introspect.Interface) int { return strings.Compare(a.Name, b.Name) })
	if slices.Contains(managed, x.at) {
		n.Interfaces = append(n.Interfaces, introspect.Interface{Name: managerOf, Methods: []introspect.Method{
			{Name: "GetManagedObjects", Args: []introspect.Arg{{Name: "objects", Type: "a{oa{sa{sv}}}", Direction: "out"}}}}})
	}
	below := map[string]bool{}
	under := strings.TrimSuffix(string(x.at), "/") + "/"
	add := func(at string) {
		if rest, is := strings.CutPrefix(at, under); is && rest != "" {
			first, _, _ := strings.Cut(rest, "/")
			below[first] = true
		}
	}
	for at := range x.all {
		add(string(at))
	}
	for _, at := range managed {
		add(string(at))
	}
	for name := range below {
		n.Children = append(n.Children, introspect.Node{Name: name})
	}
	slices.SortFunc(n.Children, func(a, b introspect.Node) int { return strings.Compare(a.Name, b.Name) })
	return string(introspect.NewIntrospectable(&n)), nil
}
