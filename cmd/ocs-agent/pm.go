package main

import (
	"context"
	"fmt"
	"strings"

	"ringlight/agent"
	"ringlight/cmd/cli"
	"ringlight/proto"
)

// pm prints what the running agent has recorded, with the network up or down.
func pm(_ context.Context, args []string) error {
	fs, common := newFlags("pm", "what the running agent has recorded, by quarters of an hour or days, UTC.\n? behind the samples: it was not watched for all of the time", "ocs-agent pm 1/external1 -bins 1d\nocs-agent pm 17A")
	length := fs.String("bins", proto.BinsQuarter, proto.BinsHelp)
	words, err := common.words(args, 1)
	if err != nil {
		return err
	}
	cfg, err := common.load()
	if err != nil {
		return err
	}
	scope, err := proto.ParseBinScope(strings.Join(words, ""), *length, cfg.Board.isSwitch())
	if err != nil {
		return cli.AsUsage(err)
	}
	q := agent.Question{Verb: "pm", Bins: &scope}
	all := []proto.Bin{}
	for more := true; more; more = q.Value != 0 {
		ans, err := answered(cfg.askSocket(q))
		if err != nil {
			return err
		}
		all, q.Value = append(all, ans.Bins...), ans.Next
	}
	r := proto.Records{Subject: strings.Join(words, ""), Bins: []proto.BinJSON{}}
	for i := range all {
		r.Bins = append(r.Bins, all[i].JSON(""))
	}
	return answer(common.json, r, func() {
		fmt.Println(proto.BinsHead)
		for i := range all {
			fmt.Println(all[i].Line())
		}
	})
}
