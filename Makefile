# Ringlight. `make help` lists what one can do.

GO      ?= go
export CGO_ENABLED ?= 0
# Of tests as of commands: what the one compiles, the other need not.
export GOFLAGS := $(strip $(GOFLAGS) $(if $(findstring -trimpath,$(GOFLAGS)),,-trimpath))
LDFLAGS := -s -w -X main.version=$(shell git describe --tags --always --dirty 2>/dev/null || echo unknown) \
           -X ringlight/proto/cert.built=$(shell git log -1 --format=%ct 2>/dev/null)
BUILD   := $(GO) build -ldflags '$(LDFLAGS)'
CMDS    := ocs-agent ocs-planner ocs-sim ocs-slurm ocs-sonic ocsctl
CROSS   := linux-arm64 linux-arm linux-amd64
CMDS_arm := ocs-agent ocsctl# controllers of 32 bits run agents, no planners
FUZZTIME ?= 5s

.DEFAULT_GOAL := help
.PHONY: help build cross test race fuzz bench lint demo core bench-broker bench-arm64 clean

help: ## this list
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## /{printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## native commands into bin/
	@mkdir -p bin
	@[ -x bin/ocs-sim ] || echo "builds the commands from source; the first time takes about a minute"
	$(BUILD) -o bin/ $(addprefix ./cmd/,$(CMDS))

# Agents for board controllers leave periph's drivers of single-board computers out.
TAGS ?= nohost
# What seldom runs - at a start, in a handshake - or waits for a module's or box's controller is not inlined in an agent for boards:
# 10,420,386 bytes are 9,961,634 so (arm64). The file grows by steps of 65,536; 43,980 bytes of code are left to the next.
SELDOM := ringlight/agent/bench ringlight/hal/boardfile ringlight/cmd/cli ringlight/cmd/ocs-agent ringlight/ocs/mci ringlight/ocs/box \
          ringlight/hal/scpi ringlight/hal/tl1 ringlight/hal/sonic ringlight/sim ringlight/sim/solo ringlight/hal/socket \
          periph.io/x/conn/v3/physic periph.io/x/conn/v3/driver/driverreg periph.io/x/conn/v3/gpio/gpioreg periph.io/x/conn/v3/i2c/i2creg \
          periph.io/x/conn/v3/spi/spireg golang.org/x/net/proxy golang.org/x/net/internal/socks crypto/tls crypto/x509 crypto/x509/pkix \
          crypto/ecdsa crypto/hpke crypto/rsa vendor/golang.org/x/crypto/cryptobyte encoding/asn1 encoding/json flag math/big mime net/http net/textproto net/url
cross: $(addprefix cross-,$(CROSS)) ## static commands for linux/arm64 and amd64, and for arm (v7) agent and ocsctl, into bin/linux-<arch>/ (TAGS=: with periph's host drivers)

cross-linux-%:
	@mkdir -p bin/linux-$*
	GOOS=linux GOARCH=$* GOARM=7 $(BUILD) -tags '$(TAGS)' -o bin/linux-$*/ $(addprefix ./cmd/,$(filter-out ocs-agent,$(or $(CMDS_$*),$(CMDS))))
	GOOS=linux GOARCH=$* GOARM=7 $(BUILD) -tags '$(TAGS)' $(SELDOM:%=-gcflags=%=-l) -o bin/linux-$*/ ./cmd/ocs-agent

PREFIX ?= /usr/local
.PHONY: install
install: build ## commands, units (not enabled) and an example into $(DESTDIR)$(PREFIX)
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib/systemd/system $(DESTDIR)$(PREFIX)/share/doc/ringlight
	install -m 755 $(addprefix bin/,$(CMDS)) $(DESTDIR)$(PREFIX)/bin/
	for u in agent planner slurm; do sed 's,/usr/bin/,$(PREFIX)/bin/,' cmd/install/ocs-$$u.service >$(DESTDIR)$(PREFIX)/lib/systemd/system/ocs-$$u.service; done
	install -m 644 cmd/install/agent.json hal/boardfile/default.json $(DESTDIR)$(PREFIX)/share/doc/ringlight/

.PHONY: packages bench-packages
packages: cross man ## Debian packages of agent, planner and tools into bin/packages (needs dpkg-deb)
	cmd/install/deb.sh bin/packages

.PHONY: images bench-images
images: cross ## container images of planner, tools and ocs-dra (IMAGES) into bin/images, as OCI archives of amd64 and arm64, without a daemon
	cmd/install/oci.sh bin/images $(IMAGES)

bench-images: images ## images built again have the same bytes; another's tools read and unpack them, and what is inside answers (needs skopeo, umoci, root)
	@.ci/images.sh $(IMAGES)

bench-packages: ## packages built twice, looked through, installed, hung, upgraded and purged under systemd in a container (needs dpkg-deb, lintian, debootstrap, systemd-container, root)
	@.ci/packages.sh

.PHONY: bench-yocto
bench-yocto: cross bmc ## the Yocto recipe before bitbake, up to its image (BITBAKE, OECORE: checkouts of one release; needs pseudo, chrpath, diffstat, lz4, locales)
	@.ci/yocto.sh

.PHONY: man
man: build ## manual pages and shell completions of all commands into bin/man/ and bin/completion/
	@mkdir -p bin/man bin/completion
	@for c in $(CMDS); do bin/$$c man > bin/man/$$c.1 && for s in bash zsh fish; do bin/$$c completion $$s > bin/completion/$$c.$$s || exit 1; done; done

.PHONY: docs
docs: build ## every command of the pages' console blocks, run, and what stands below it printed (PAGES: these alone; LONG=1: the long ones too); of all others, that there is one, with these flags
	@.ci/docs-inline.sh
	@.ci/docs.sh

demo: build ## broker, planner, 64 agents on simulated boards, 348 days of faults (TRACE=FILE replays a trace)
	@bin/ocs-sim demo $(if $(TRACE),-trace $(TRACE))

core: build ## jobs between pods: broker, planner, agents of 32 simulated MEMS switches, links moved in stages
	@bin/ocs-sim core

test: ## the tests, those that draw or go through much with a part of it, the four longest of sim/testbed left to test-long
	@# make lint vets. GOGC: a tenth less processor time, of the compiler too. Tests that are parallel, and those of the packages named first, wait more than they compute
	GOGC=400 $(GO) test -short -vet=off -p 4 -parallel 8 -timeout 20m ./sim/testbed ./sim/live ./planner/server ./cmd/ocsctl ./...

LONGER = ./agent ./cmd/ocs-agent ./cmd/ocs-sim ./mzi ./node ./ocs ./planner ./planner/jobapi ./planner/ring ./sim/fleet ./sim/study ./sim/testbed
.PHONY: test-long
test-long: ## the packages whose tests draw or go through more than make test has time for (LONGER), with all of it
	GOGC=400 $(GO) test -vet=off -p 4 -parallel 8 -timeout 20m $(LONGER)

race: ## the packages with goroutines (RACE), but for tests of one goroutine that are long, under the race detector (needs a C compiler)
	@if command -v $${CC:-cc} >/dev/null; then \
	  CGO_ENABLED=1 $(GO) test -vet=off -race -short -skip 'AtAnyByte|ThousandKills|DamagedJournal|EveryReasonNamesItsWayOut|DemoRunsThrough|DemoWithoutA|CoreBecomesLight|OnlySends' $(or $(RACE),./agent/... ./hal/linux ./hal/socket ./proto/mqtt ./planner/server ./planner/gnmi ./sim/solo ./sim/live); \
	else echo "race: skipped, no C compiler"; fi

fuzz: ## every fuzz target for FUZZTIME (5s), or PART of them, such as 0/3
	@FUZZTIME=$(FUZZTIME) PART=$(PART) .ci/fuzz.sh

bench: build ## benchmarks, binary sizes and memory, with machine and commit
	@echo "commit $$(git describe --always --dirty)  $$($(GO) version)  $$(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2)  $$(nproc) cores"
	$(GO) test -run '^$$' -bench . -benchmem ./...
	@$(MAKE) --no-print-directory sizes

.PHONY: model
model: ## models of the protocol explored to their end, planted defects found, traces held against the code (needs spin, a C compiler)
	@.ci/model.sh

.PHONY: ways
ways: ## the two ways of docs/architecture.md, from a decision to light and from lost light to the planner, drawn anew from stacks
	RINGLIGHT_WAYS=1 $(GO) test -count 1 -v -run TheTwoWays ./sim/fleet

.PHONY: bench-histories
bench-histories: ## RUNS (200) random histories of the job API under kills of the planner, judged by porcupine
	RINGLIGHT_HISTORIES=$(or $(RUNS),200) $(GO) test -count 1 -v -run HistoriesAreLinearizable ./planner/jobapi

.PHONY: bench-elastic
bench-elastic: build ## BYPASSES (10) and REPLACEMENTS (3) under a PyTorch loop that goes on in the new order (needs python3-torch, or skipped)
	@for p in python3 /usr/bin/python3; do if $$p -c 'import torch' 2>/dev/null; then exec $$p .ci/elastic.py bin $(or $(BYPASSES),10) $(or $(REPLACEMENTS),3); fi; done; echo "elastic: skipped, no python3-torch"

.PHONY: bench-testbed
bench-testbed: build ## light that carries packets: CHANGES (30) and a probe of all pairs at each rest, CUTS (3) of power under UDP and TCP round a ring, jobs alone on leaves and spines, servers joined directly, pods that route by BGP (needs root, iproute2, TAP, and FRR for the last, or skipped)
	RINGLIGHT_AGREE=$(or $(CHANGES),30) $(GO) test -count 1 -v -timeout 0 -run LightAndPacketsAgree ./sim/testbed
	@bin/ocs-sim testbed ring -fibres -cuts $(or $(CUTS),3) -used || { [ $$? = 2 ] && echo "testbed: skipped"; }
	@bin/ocs-sim testbed isolate -jobs 3 -leaves 8 -for 2s -used || { [ $$? = 2 ] && echo "testbed isolate: skipped"; }
	@bin/ocs-sim testbed direct -servers 6 -for 2s -flips 2 -used || { [ $$? = 2 ] && echo "testbed direct: skipped"; }
	@bin/ocs-sim testbed bgp -pods 2 -leaves 2 -spines 2 -changes 3 -kill -used || { [ $$? = 2 ] && echo "testbed bgp: skipped"; }

.PHONY: optimum
optimum: ## rewiring of small groups against proven optima, and of 200 with more spine ports than pods (needs coinor-cbc)
	@if command -v cbc >/dev/null; then RINGLIGHT_OPTIMUM=1 $(GO) test -count 1 -v -timeout 0 -run AgainstTheSolver ./planner/wiring; \
	else echo "optimum: skipped, no cbc (package coinor-cbc)"; fi

.PHONY: bench-wiring
bench-wiring: ## circuits kept by the first answer, the published method and the search, by steps, with processor time: 128 x 16 x 16, 512 x 32, 1,024 x 32, 128 x 256
	$(GO) test ./planner/wiring -run '^$$' -bench 'Rewire$$|RewireLarge' -benchtime 1x

.PHONY: bench-calibration
bench-calibration: ## calibration of 200 boards from nothing: worst, p5, board time, measurements; 20 boards of 16 modules
	RINGLIGHT_CALIBRATION=200 $(GO) test -count 1 -v -run 'EveryCellOfManyBoards|NamesThePlantedCell' ./ocs
	RINGLIGHT_CALIBRATION=20 RINGLIGHT_BUNDLES=2 $(GO) test -count 1 -v -run EveryCellOfManyBoards ./ocs

.PHONY: bench-physics
bench-physics: ## calibration and 180 switches on boards whose physics are not ours, a row a world, judged by the truth (BOARDS, 6 of each kind; KINDS, ltc2688 ad5676r cmis riser cage gazebo; ROWS, a part of the names)
	RINGLIGHT_CALIBRATION=$(or $(BOARDS),6) RINGLIGHT_KINDS="$(KINDS)" RINGLIGHT_ROWS="$(ROWS)" $(GO) test -count 1 -v -timeout 0 -run PhysicsThatIsNotOurs ./ocs

RINGLIGHT_RUNS ?= 1000000
.PHONY: bench-rings
bench-rings: ## RINGLIGHT_RUNS (a million) seeded faults on small rings, lines, gaps and wraps, and as many with starved agents: open pieces, splits, recovery
	$(GO) test ./node -count 1 -timeout 0 -v -run 'TestRingsHeal$$|TestStarvedRingsClose$$|TestSteppedOverInTime$$|TestSteppingOverExplored$$|TestPrepareAndCommitExplored$$' -runs $(RINGLIGHT_RUNS)

.PHONY: bench-isolate
bench-isolate: ## jobs alone on leaves and spines: proofs and exhaustion at length, processor time and steps of a decision on 2,048 GPUs
	@echo "commit $$(git describe --always --dirty)  $$($(GO) version)  $$(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2)  $$(nproc) cores"
	RINGLIGHT_ISOLATE=$(or $(RUNS),100) $(GO) test ./planner/isolate -count 1 -timeout 0 -v -run '$(or $(ONLY),.)'
	$(GO) test ./planner/isolate -run '^$$' -bench Decision -benchtime 20x

.PHONY: bench-core
bench-core: build ## switch agents killed in the middle of every stage, RUNS (200) seeds on a virtual clock
	bin/ocs-sim core -runs $(or $(RUNS),200)
	bin/ocs-sim core -runs $(or $(RUNS),200) -collectives ring,halving-doubling,double-tree,all-to-all
	bin/ocs-sim core -kind leaf-spine -changes 12 -runs $(or $(RUNS),200)
	bin/ocs-sim core -changes 8 -runs $(or $(RUNS),200) -grow 8,6
	bin/ocs-sim core -kind leaf-spine -changes 8 -runs $(or $(RUNS),50) -grow 12,10
	bin/ocs-sim core -kind direct -servers 16 -changes 8 -runs $(or $(RUNS),50) -grow 24,10
	bin/ocs-sim core -runs $(or $(RUNS),20) -boxes mirrors,scpi,tl1,sonic-ocs

.PHONY: bench-lock
bench-lock: ## the unbounded walk of docs/board.md for a simulated day; a day of +-10 K in each mode of the lock, external and loopback; a step, a ramp; lasers that die, wander, hop (BOARDS, 1)
	RINGLIGHT_LOCK=24h RINGLIGHT_CALIBRATION=$(or $(BOARDS),1) $(GO) test -count 1 -v -timeout 60m -run 'WalkIsHeldWithin25dB|DayIsHeldOrSaid|MatrixIsCarried|LasersDoNotMislead' ./ocs

.PHONY: bench-words
bench-words: ## boards whose physics are drawn at random on their first day and the second: every word about light against the truth (WORLDS, 30; SEED, 1; KINDS, ltc2688 ad5676r, or cmis riser cage gazebo)
	RINGLIGHT_WORLDS=$(or $(WORLDS),30) RINGLIGHT_SEED=$(or $(SEED),1) RINGLIGHT_KINDS="$(KINDS)" $(GO) test -count 1 -v -timeout 0 -run NoWordOfLight ./ocs

.PHONY: budget
budget: cross ## the arm64 agent is at most 10 MB, or which packages grew (UPDATE=1 writes them down anew)
	@.ci/budget.sh

.PHONY: sizes
sizes: build budget ## size of the static binaries, resident memory of an idle agent
	@for a in $(CROSS); do for c in $$(ls bin/$$a); do printf '%-12s %-12s %6d KiB\n' $$a $$c $$(( $$(stat -c %s bin/$$a/$$c) / 1024 )); done; done
	@.ci/rss.sh

.PHONY: study-jct
study-jct: build ## jobs on a leaf-spine core, [VCLOS] Tables 2, 5, 6, 7 beside ours: the figures of docs/isolated.md (RUNS: 5)
	@for a in "-lambda 100,110,120,130,140" "-lambda 120 -queue edf,fewest" "-lambda 120 -queue edf,fewest -patience 0" \
	  "-lambda 100 -queue fifo,easy -strategies best,vclos,ocs" "-lambda 100 -queue fifo,easy -strategies best,vclos,ocs -workload w2" \
	  "-lambda 100,120,140 -strategies best,vclos,ocs -workload w2" "-lambda 6000 -workload tpuv4 -runs 1" \
	  "-lambda 120 -sharing equal -strategies best,sr,balanced,ecmp" "-lambda 120 -sharing phases -strategies best,sr,balanced,ecmp" \
	  "-cluster 2048 -lambda 15,25 -queue fifo,easy -strategies vclos,ocs -parallel 1"; do \
	  echo "== ocs-sim study jct -runs $(or $(RUNS),5) $$a"; bin/ocs-sim study jct -runs $(or $(RUNS),5) $$a || exit 1; done

.PHONY: study-compare
study-compare: build ## every system on one workload: the figures of docs/compare.md (TRACE=FILE replays a trace)
	@for a in "" "-workload philly -jobs 40000 -runs 2" "-workload w2 -jobs 2500 -runs 2 -loads 0.75 -fault-rates 1" "-gbps 400 -scale-up-gbps 4000 -loads 0.75 -fault-rates 1" \
	  "-gbps 400 -scale-up-gbps 4000 -budget cost -dollars 1149 -systems switch,infinitehbd,lumoscore,topoopt,clos-balanced,clos-ecmp -loads 0.75 -fault-rates 1"; do \
	  echo "== ocs-sim study compare $$a"; bin/ocs-sim study compare $(if $(TRACE),-trace $(TRACE)) $$a || exit 1; done

lint: ## gofmt, vet, staticcheck, module file, the rules of the house
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo "lint: gofmt"; exit 1; }
	$(GO) vet ./...
	$(GO) tool -modfile=.ci/lint.mod staticcheck ./...
	$(GO) mod tidy -diff
	$(GO) test ./tidy

bench-broker: build ## against a real broker: planner and broker killed with -9 (needs mosquitto)
	@.ci/broker.sh

# A cluster whose parts are processes, killed and judged.
PROCS = $(GO) test ./sim/procs -count 1 -timeout 0 -v -run 'TestProcesses$$' -args -bin $(CURDIR)/bin

.PHONY: bench-procs
bench-procs: build ## broker, planner, 16 boards and 16 agents, each a process, killed in turn; bypasses quietly and under a flood (needs mosquitto; FLOODS)
	@PATH=$$PATH:/usr/sbin; if command -v mosquitto >/dev/null; then $(PROCS) -broker $$(command -v mosquitto) -floods $${FLOODS:-3}; \
	else echo "procs: skipped, no mosquitto"; fi

.PHONY: soak
soak: build ## the same cluster under a fault after the other for SOAK (20m; 24h judges memory too), planner and broker killed thrice or hourly: memory, descriptors, journals, store, light (needs mosquitto; SEED)
	@PATH=$$PATH:/usr/sbin; if command -v mosquitto >/dev/null; then echo "commit $$(git describe --always --dirty)  $$($(GO) version)  $$(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2)  $$(nproc) cores"; \
	$(PROCS) -broker $$(command -v mosquitto) -soak $(or $(SOAK),20m) -seed $(or $(SEED),1); \
	else echo "soak: skipped, no mosquitto"; fi

.PHONY: bench-jobs
bench-jobs: build ## broker, planner, 64 boards and 64 agents, each a process: jobs timed, the planner killed in each state of one, many watch (needs mosquitto; ASKS, KILLS, WATCHERS)
	@PATH=$$PATH:/usr/sbin; if command -v mosquitto >/dev/null; then echo "commit $$(git describe --always --dirty)  $$($(GO) version)  $$(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2)  $$(nproc) cores"; \
	$(PROCS) -broker $$(command -v mosquitto) -asks $${ASKS:-100} -job-kills $${KILLS:-56} -watchers $${WATCHERS:-1000}; \
	else echo "jobs: skipped, no mosquitto"; fi

.PHONY: bench-keys
bench-keys: build ## NODES (64) agents and boards, each a process, enrol with tokens, killed CUTS (3) times each, robbed twice; every key is replaced under load; with the planner's broker and with mosquitto (needs mosquitto; SEED; BROKERS=mosquitto, ONLY, a part of what is replaced)
	@PATH=$$PATH:/usr/sbin; echo "commit $$(git describe --always --dirty)  $$($(GO) version)  $$(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2)  $$(nproc) cores"; \
	if command -v mosquitto >/dev/null; then for b in $(or $(BROKERS),embedded mosquitto); do echo "== broker: $$b"; $(PROCS) -broker $$(command -v mosquitto) -cuts $(or $(CUTS),3) -nodes $(or $(NODES),64) -seed $(or $(SEED),1) -only "$(ONLY)" $$([ $$b = mosquitto ] || echo -embedded) || exit 1; done; \
	else echo "keys: skipped, no mosquitto"; fi

.PHONY: bench-planted
bench-planted: build ## seventeen defects planted one after the other into edits of a fabric, trials of fibres, beliefs, journals and descriptors, and what must find each (ONLY, a part of their names; EDITS, seeds; needs perl, mosquitto)
	@.ci/planted.sh

.PHONY: bench-lies
bench-lies: build ## every field of what a device says at its limits, sealed with its own key, judged by an unrelated ring's repair, names, audit chain, light (one in LIES, 1); ROUNDS (40) of them against NODES (16) agents and boards, each a process; five planted beliefs (SEED; needs perl)
	@echo "commit $$(git describe --always --dirty)  $$($(GO) version)  $$(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2)  $$(nproc) cores"
	RINGLIGHT_LIES=$(or $(LIES),1) $(GO) test -count 1 -v -timeout 0 -run LiesStopNothing ./sim/fleet
	$(PROCS) -lies $(or $(ROUNDS),40) -nodes $(or $(NODES),16) -seed $(or $(SEED),1)
	@ONLY=believed .ci/planted.sh

.PHONY: bench-damage
bench-damage: build ## journals and stores of running agents, of switches too, and planner damaged, writers killed with -9, the boards' own record judges (DAMAGE, KILLS, SEED; needs mosquitto)
	@PATH=$$PATH:/usr/sbin; if command -v mosquitto >/dev/null; then $(PROCS) -broker $$(command -v mosquitto) -damage $${DAMAGE:-500} -kills $${KILLS:-1000} -seed $${SEED:-1}; \
	else echo "damage: skipped, no mosquitto"; fi

# The release before this one: a tag, or a commit while there is none.
UPGRADE_FROM ?= 05cdbfc
.PHONY: bench-upgrade
bench-upgrade: build ## NODES (64) agents of the release before, each a process, become today's and go back under load; a bad release is stopped (UPGRADE_FROM; needs git, mosquitto)
	@UPGRADE_FROM=$(UPGRADE_FROM) .ci/upgrade.sh

bench-arm64: cross ## the arm64 agent under user-mode QEMU (needs qemu-user-static)
	@.ci/arm64.sh

.PHONY: bench-fleet
bench-fleet: build ## a day of 10,000 nodes under random faults on one virtual clock; losses of three at K = 4
	@bin/ocs-sim fleet -nodes 10000 -gpus 4 -k 3 -tp 64 -hours 24 -faults random -seed 1
	@bin/ocs-sim fleet -nodes 2000 -gpus 4 -k 4 -tp 64 -modules 1 -hours 18 -fault-rate 5 -seed 1

.PHONY: bench-hash
bench-hash: ## one fleet, one set of flows, one comparison on amd64, GOAMD64=v3 and arm64: the same trace (HASH_ARGS, FLOW_ARGS, COMPARE_ARGS name others; needs qemu-user-static)
	@.ci/hash.sh

.PHONY: bench-web
bench-web: ## the live view in a real Chromium: a board loses its light and every page shows it; 10,000 nodes, 20 viewers (DOCS=1 takes the pictures of docs/view.md; AXE: axe.min.js of the npm package axe-core, a second judge)
	RINGLIGHT_WEB=$(if $(DOCS),docs,1) RINGLIGHT_AXE=$(abspath $(AXE)) $(GO) test -count 1 -v -timeout 10m -run 'ViewInARealBrowser|TenThousandNodesAreDrawn' ./sim/live ./planner/view ./planner/server

.PHONY: bench-growth
bench-growth: ## what a fault costs the planner at 10,000 to 1,000,000 nodes, all looks together, as a table and a plot, docs/placement.svg, and what agents say in memory (RINGLIGHT_GROWTH, the most nodes)
	RINGLIGHT_GROWTH=$(or $(RINGLIGHT_GROWTH),1000000) RINGLIGHT_GROWTH_SVG=$(CURDIR)/docs/placement.svg $(GO) test -count 1 -v -timeout 30m -run 'OneFaultCosts|WhatAgentsSay|PlacementGrows|IdleNodesAgainst|PatienceLoses' ./planner/hbd ./planner/ring

.PHONY: bench-states
bench-states: ## placements after random faults and repairs against exhaustion (RINGLIGHT_STATES, 60,000)
	RINGLIGHT_STATES=$(or $(RINGLIGHT_STATES),60000) $(GO) test -count 1 -v -run NoStateIsLeftWorse ./planner/ring

.PHONY: bench-latency
bench-latency: ## wall clock from a line's edge to the write that answers it: idle, garbage, busy machine, with and without real time (RUNS: 300)
	@.ci/latency.sh

.PHONY: bench-kernel
bench-kernel: ## the agent on real I2C and SPI controllers (armv7, arm64), the kernel's chip drivers on our register models: Debian kernels in QEMU (BOARDS, all)
	@.ci/kernel.sh $(BOARDS)

.PHONY: bench-cmis
bench-cmis: ## a simulated module brought up and given firmware by a switch's own software (SONIC: a checkout of sonic-net/sonic-platform-common)
	@if [ -d "$(SONIC)/sonic_platform_base" ]; then RINGLIGHT_SONIC=$(abspath $(SONIC)) $(GO) test -count 1 -v -run SONiC ./sim; \
	else echo "cmis: skipped, SONIC names no checkout of sonic-net/sonic-platform-common"; fi

.PHONY: bench-sonic-ocs
bench-sonic-ocs: build ## a switch driven by sonic-mgmt's module, unmodified (DIR: ocs_cross_connect.py, and the YANGs for yanglint; needs ansible-core); 1,000 changes of a simulated box with each fault
	RINGLIGHT_SONIC=1 $(GO) test -count 1 -run SonicBoxes ./ocs/box
	@DIR="$(DIR)" .ci/sonic-ocs.sh

.PHONY: bench-openapi
bench-openapi: build ## the job API asked by a client that a generator of others makes of openapi.json, and by one from docs/jobs.md alone (needs node 18 and npm; GENERATOR: a folder that has swagger-typescript-api)
	@GENERATOR="$(GENERATOR)" .ci/openapi.sh

.PHONY: bench-newcomer
bench-newcomer: ## this commit cloned, built and run by docs/quickstart.md with an empty HOME: minutes and commands to the first ring, why, metric (CLEAN=1: in a fresh Debian; needs debootstrap, systemd-container, root)
	@.ci/newcomer.sh

.PHONY: bench-trace
bench-trace: ## ocsctl trace shown by a viewer that is not ours, in a real Chromium (SPEEDSCOPE: dist/release of the npm package speedscope)
	@if [ -f "$(SPEEDSCOPE)/index.html" ]; then RINGLIGHT_SPEEDSCOPE=$(abspath $(SPEEDSCOPE)) $(GO) test -count 1 -v -run InAViewerThatIsNotOurs ./cmd/ocsctl; \
	else echo "trace: skipped, SPEEDSCOPE names no dist/release of speedscope"; fi

.PHONY: bench-metrics
bench-metrics: ## pages of 10,000 nodes every 15 s in shares of a core; pages, rules and their unit tests before promtool (needs prometheus)
	@echo "commit $$(git describe --always --dirty)  $$($(GO) version)  $$(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2)  $$(nproc) cores"
	$(GO) test -count 1 -v -run 'Promtool|Dashboard|AlertsSay|MetricsPage' .
	$(GO) test -count 1 -v -run 'PagesAreRead|MetricsOf|Textfile' ./planner/server ./cmd/ocs-agent
	$(GO) test -run '^$$' -bench 'Series|ScrapeOf' ./proto/metric ./planner/server

.PHONY: bench-hostile
bench-hostile: build ## a stranger at the embedded broker of 64 nodes: forged, mutated, repeated messages, floods, held connections (SCALE, FLOOD, ONLY)
	@.ci/hostile.sh

.PHONY: bench-sealed
bench-sealed: build ## all messages sealed and the broker the attacker, with a node's key and all that was ever said (SCALE 1: a million messages; BYPASSES 200 quietly and as many under it); then without verification, which must fail
	@.ci/sealed.sh
	@echo "planted defect: seals are looked at and not enforced"
	@if RATE= SEAL=warn SCALE=0.01 BYPASSES=0 .ci/sealed.sh; then echo "not noticed"; exit 1; else echo "noticed"; fi

.PHONY: bench-seal
bench-seal: build ## what seals cost: sign and verify on amd64, arm64 and arm (user-mode QEMU) as ratios, bytes of a state, 10,000 of them, a start
	@.ci/seal.sh

.PHONY: bench-cose
bench-cose: ## sealed messages against veraison/go-cose, byte for byte (a module of its own: fetched, or skipped)
	@if (cd bridge/cose && $(GO) mod download) 2>/dev/null; then cd bridge/cose && $(GO) test -count=1 .; else echo "skipped: go-cose cannot be had here; its vectors are in proto/seal/testdata"; fi

.PHONY: bench-drivers
bench-drivers: ## TinyGo's drivers on the simulated board's chips (a module of its own: fetched, or skipped)
	@if (cd bridge/tinygo && $(GO) mod download) 2>/dev/null; then cd bridge/tinygo && $(GO) test -count=1 -v .; else echo "skipped: TinyGo's drivers cannot be had here"; fi

.PHONY: rights
rights: ## who may do what on the planner's broker, mosquitto and nats-server, every cell tried: writes the table of docs/security.md
	@PATH=$$PATH:/usr/sbin; cd bridge/nats && $(GO) test -count=1 -v -run KeepTheTable . -update

.PHONY: bench-nats
bench-nats: ## rights by name and what brokers are asked, on nats-server, a server and three (a module of its own: fetched, or skipped)
	@if (cd bridge/nats && $(GO) mod download) 2>/dev/null; then cd bridge/nats && $(GO) test -count=1 -v -run 'NATS|Wills' .; else echo "skipped: nats-server cannot be had here"; fi

.PHONY: bench-broker-cluster
bench-broker-cluster: ## three nats-servers killed in turn and by two, under AGENTS (3,000) agents on simulated boards and a planner, RINGED (320) of them in rings: who is back when, and no light changes, or each change with its node, path and cause (fetched, or skipped)
	@if (cd bridge/nats && $(GO) mod download) 2>/dev/null; then cd bridge/nats && RINGLIGHT_CLUSTER=$(or $(AGENTS),3000) RINGLIGHT_RINGED=$(RINGED) $(GO) test -count=1 -timeout 30m -v -run ClusterIsKilled .; else echo "skipped: nats-server cannot be had here"; fi

.PHONY: bench-gnmi
bench-gnmi: build ## openconfig's gnmi_cli and collector read, follow and set a planner of 16 simulated nodes while one dies; strangers; SUBSCRIBERS (1000) streams (fetched, or skipped; ONLY)
	@.ci/gnmi.sh

.PHONY: bmc bench-bmc
bmc: ## optics on a controller's D-Bus, a module of its own, into bin/ and bin/linux-<arch>/ (fetched, or skipped)
	@if (cd bridge/bmc && $(GO) mod download) 2>/dev/null; then mkdir -p bin && cd bridge/bmc && $(BUILD) -o ../../bin/ocs-bmc . && \
	for a in $(CROSS); do GOOS=linux GOARCH=$${a#linux-} GOARM=7 $(BUILD) -o ../../bin/$$a/ocs-bmc . || exit 1; done; \
	else echo "bmc: skipped, the D-Bus library cannot be had here"; fi

bench-bmc: build bmc ## ocs-bmc before dbus-daemon and busctl, with an agent of a simulated board: what is read, size and memory (needs both; BMCWEB, MAPPER: bmcweb and its object mapper, asked by redfishtool)
	@if [ -x bin/ocs-bmc ]; then (cd bridge/bmc && test -z "$$(gofmt -l .)" && $(GO) vet . && $(GO) test -count=1 .) && .ci/bmc.sh; fi

.PHONY: bridge
bridge: ## the bridge to Kubernetes, a module of its own, built and tested (fetched, or skipped)
	@if (cd bridge/dra && $(GO) mod download) 2>/dev/null; then mkdir -p bin && cd bridge/dra && test -z "$$(gofmt -l .)" && $(GO) build -o ../../bin/ ./cmd/ocs-dra && $(GO) test -vet=off -count=1 ./controller ./plugin ./cmd/ocs-dra; \
	else echo "bridge: skipped, the modules of Kubernetes cannot be had here"; fi

.PHONY: kubernetes bench-kubernetes
kubernetes: ## API server, controller manager and scheduler of Kubernetes built into CACHE, where CI finds them: once, 8 min on two idle cores (needs etcd-server; KUBERNETES=VERSION)
	@.ci/kubernetes.sh build

bench-kubernetes: build ## pods get rings of a real API server, scheduler and controller manager: JOBS (200) of 1 to 8 rings on 64 nodes, boards, controller and planner killed, and circuits of a core (as make kubernetes; SEED; ONLY=TEST)
	@.ci/kubernetes.sh

.PHONY: bench-ha
bench-ha: build ## three members of etcd, two planners, 64 agents: leaders killed RUNS (20) times, stopped, cut off, etcd killed and restored; a leader that does not look (needs etcd-server, etcd-client)
	@if command -v etcd >/dev/null && command -v etcdctl >/dev/null; then RINGLIGHT_HA=$(CURDIR)/bin RINGLIGHT_RUNS=$(or $(RUNS),20) $(GO) test -count 1 -v -timeout 20m -run Leader ./planner/server/etcd; \
	else echo "ha: skipped, no etcd or no etcdctl (packages etcd-server, etcd-client)"; fi

.PHONY: bench-slurm
bench-slurm: build ## a real slurmctld with munge and 20 slurmd's: jobs start on light, boards die, the planner dies, JOBS (1000) come and go; block and ring on newer releases of slurm-roots; with SEED instead 200 under random cancels, requeues, signals and kills, with Slurm's default settings, and the same without Ringlight (needs slurm-wlm, munge, mosquitto, perl, root)
	@SEED='$(SEED)' $(if $(JOBS),JOBS=$(JOBS)) .ci/slurm.sh
	@[ -n '$(SEED)' ] || for r in trixie/block sid/block sid/ring; do SLURM_ROOT=$(SLURM_ROOTS)/$${r%/*} SHAPE=$${r#*/} JOBS=40 .ci/slurm.sh || exit 1; done

SLURM_ROOTS ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/ringlight/slurm
.PHONY: slurm-roots
slurm-roots: ## Slurm 24.11 of Debian trixie and the newest of sid (26.05), in folders of their own (SLURM_ROOTS) of 350 MB each (needs debootstrap, root)
	@mkdir -p "$(SLURM_ROOTS)"; for s in trixie sid; do [ -x "$(SLURM_ROOTS)/$$s/usr/sbin/slurmctld" ] || \
	  debootstrap --variant=minbase --include=slurmctld,slurmd,slurm-client,munge $$s "$(SLURM_ROOTS)/$$s" || { rm -rf "$(SLURM_ROOTS)/$$s"; exit 1; }; done

.PHONY: bench-rivals
bench-rivals: build ## a second planner by mistake: wrong fabric, empty, older, copied store; the boards' own record (mosquitto where there is one)
	@.ci/rivals.sh

clean: ## remove bin/
	rm -rf bin
