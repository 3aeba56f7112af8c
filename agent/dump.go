package agent

import (
	"errors"

	"ringlight/hal"
	"ringlight/ocs"
	"ringlight/proto"
)

// dump begins to read the memory of one CMIS module.
func (o *nodeOptics) dump(q Ask) *proto.Error {
	if err := o.noBundle(q.Bundle); err != nil {
		return err
	}
	b := &o.bundles[q.Bundle]
	if b.dump != 0 {
		return &proto.Error{Code: proto.Busy, Field: "bundle", Reason: "a module of bundle " + itoa(int(q.Bundle)) + " is being read"}
	}
	if err := b.optics.Dump(q.Module); err != nil {
		return dumpError(err)
	}
	b.dump, b.due = q.ID, true
	return nil
}

// dumped answers when the memory has been read.
func (o *nodeOptics) dumped(b *bundle) {
	image, done, err := b.optics.DumpImage()
	if !done && b.optics.Status().Machine == ocs.Idle {
		return
	}
	ans := &Answer{ID: b.dump, Image: image}
	switch {
	case !done:
		ans.Err = dumpError(ocs.ErrNotReady)
	case err != nil:
		ans.Err = dumpError(err)
	}
	b.dump = 0
	o.agent.reply(ans)
}

func dumpError(err error) *proto.Error {
	e := &proto.Error{Code: proto.HardwareFailed, Field: "module", Reason: proto.Clip(err.Error())}
	switch {
	case errors.Is(err, hal.ErrUnsupported):
		e.Code, e.Reason = proto.Unsupported, "only CMIS modules have a memory to dump; this one's chips are read by peek"
	case errors.Is(err, hal.ErrOutOfRange):
		e.Code = proto.Invalid
	case errors.Is(err, ocs.ErrNotReady):
		e.Code = proto.Busy
	}
	return e
}
