/*
 * Light and plans: prepare and commit among nodes of which one is stepped over, and
 * what each side of each node then does by light alone. node/side.go, node/search.go,
 * node/plan.go and node/adopt.go for nodes; planner/hbd for what a planner plans.
 *
 * N nodes stand in a row; fibres join those at most two apart. A plan gives each node
 * a ring, or none. A side of a node faces one of its candidates, the nearer or the
 * farther member of its ring on that side, or itself: loopback. A side has light while
 * the other end faces it. What was said stays said, as in commit.pml, so a node that
 * hears nothing, for a while or for ever, needs no rule. An agent dies and comes back,
 * one at a time: meanwhile its node's light stands. With POWER one node goes dark for
 * good. With LIAR the last node takes every plan, holds none, and turns where it likes.
 *
 * Times are not in it; what they are for is: a side that listens does not give up on
 * an end that will answer (dwell and answer, docs/protocol.md section 8).
 *
 * The planner plans all nodes of a row as one ring or two, and any one of them out: it
 * is asked like the others, or stepped over. Who was stepped over holds an old plan:
 * it is told that it is idle, and has reported that, before a ring has it again.
 *
 * Explored to the end for N nodes and PLANS plans, the one in force at the start among
 * them. Properties, by the invariants of node/doc.go:
 *   closed     closed rings: at rest no node's piece is open
 *   alone      closed rings: at rest who was left out, asked or stepped over, is closed
 *              on both sides once the others have their plan, whatever it holds itself
 *   stranger   no stranger's light: at rest no receiver is on light of another ring
 *   undecided  no half switch: nobody applies what nobody decided
 *
 * Defects to plant: STEPPED, who was stepped over while lit is put to use again while
 * it still holds its old plan; UNPREPARED, a decision that does not wait for its parts.
 */
#ifndef N
#define N 3
#endif
#ifndef PLANS
#define PLANS 4
#endif
#define ALL ((1 << N) - 1)
#define HAS(set, i) (((set) >> (i)) & 1)
#ifdef LIAR
#define HONEST (N - 1)
#else
#define HONEST N
#endif

mtype = { closed, alone, stranger, undecided };
mtype broken;
#define MUST(law, holds) if :: holds :: else -> broken = law; assert(false) fi

/* Plans, from 1: where the second ring begins (N: nowhere), the node that is left out
   (N: none), who takes part, who has prepared; the last one given out. */
byte cut[PLANS + 1], out[PLANS + 1], parts[PLANS + 1], okays[PLANS + 1], used, decided;
byte head, cur;   /* decided last; under way, or 0 */
byte owed = N;    /* who was stepped over and has not reported that it is idle, or N */

byte applied[N], staged[N];
byte off = N, dark = N; /* whose agent is dead, which node has no power */

/* Sides, 2 * node + (0 left, 1 right): whom they face; which candidates a search has
   left (1 the nearer, 2 the farther); whether it is under way; whether the last plan's
   own candidate has not held yet (1), and is to be tried without its light, once (2). */
byte face[2 * N];
byte todo[2 * N];
bit busy[2 * N];
byte follow[2 * N];

#define IN(p, i) (out[p] != (i))
#define RING(p, i) (1 + ((i) >= cut[p]))
#define MATES(p, i, j) (IN(p, i) && IN(p, j) && RING(p, i) == RING(p, j))
#define F(i, s) face[2 * (i) + (s)]
/* AT: the node that is d away on side s, N or more if there is none */
#define AT(i, s, d) ((s) -> (i) + (d) : ((i) >= (d) -> (i) - (d) : N))
#define NEAR(l) ((l) & 1 -> 1 : 2) /* the planned one */

/* Worked out of these after each step: a side's candidates, whether it has light,
   which candidates ask for it by theirs, and what it may do. */
#define ANSWER 1
#define SETTLE 2
#define STEP 4
#define FOLLOW 8
#define WAIT 16
byte list[2 * N], asks[2 * N], may[2 * N];
bit lit[2 * N];
byte w, x, y, z;

#define SHINES(j, s, i) ((j) != dark && F(j, 1 - (s)) == (i))

inline candidate(i, s, d) {
	z = AT(i, s, d);
	if
	:: z < N && MATES(applied[i], i, z) ->
		list[x] = list[x] | d;
		if
		:: SHINES(z, s, i) && face[x] != z -> asks[x] = asks[x] | d
		:: else
		fi
	:: else
	fi
}

inline lightOf(i, s) {
	x = 2 * (i) + s; list[x] = 0; asks[x] = 0; lit[x] = 0; may[x] = 0;
	candidate(i, s, 1);
	candidate(i, s, 2);
	z = face[x];
	if :: z != i && i != dark && SHINES(z, s, i) -> lit[x] = 1 :: else fi
}

/* The other end turns here, or looks here on its way, when it is without light, there,
   and has this node among its candidates: so long nobody gives up on it. */
inline movesOf(i, s) {
	x = 2 * (i) + s;
	if
	:: i == off || i == dark || i >= HONEST
	:: else ->
		if
		:: lit[x] -> may[x] = SETTLE * busy[x]
		:: !lit[x] && face[x] == i -> may[x] = (asks[x] -> ANSWER : 0)
		:: else ->
			z = face[x]; y = 2 * z + 1 - s;
			if
			:: z == off || z == dark || z >= HONEST || lit[y] || !MATES(applied[z], z, i) -> may[x] = (asks[x] -> ANSWER : STEP)
			:: else -> may[x] = WAIT
			fi
		fi;
		if
		:: (follow[x] == 2 || follow[x] && asks[x] & NEAR(list[x])) && list[x] != 0 && !busy[x] && (lit[x] || face[x] == i) && face[x] != AT(i, s, NEAR(list[x])) -> may[x] = may[x] | FOLLOW
		:: else
		fi
	fi
}

inline observe() {
	w = 0;
	do :: w < N -> lightOf(w, 0); lightOf(w, 1); w++ :: else -> break od;
	w = 0;
	do :: w < N -> movesOf(w, 0); movesOf(w, 1); w++ :: else -> break od;
	w = 0; x = 0; y = 0; z = 0
}

#define turn(i, s, j) face[2 * (i) + s] = j

#define said(i, s) printf("node %d %c faces %d\n", i, (s -> 'R' : 'L'), face[2 * (i) + s])

/* step: to the next candidate of a search, the lost one last; then loopback */
inline step(i, s) {
	x = 2 * i + s;
	if
	:: !busy[x] -> busy[x] = 1; todo[x] = list[x]
	:: else
	fi;
	if
	:: todo[x] & 2 && face[x] != AT(i, s, 2) -> todo[x] = todo[x] & 1; turn(i, s, AT(i, s, 2))
	:: else ->
		if
		:: todo[x] & 1 && (face[x] != AT(i, s, 1) || todo[x] == 1) -> todo[x] = todo[x] & 2; turn(i, s, AT(i, s, 1))
		:: else -> todo[x] = 0; busy[x] = 0; turn(i, s, i)
		fi
	fi
}

/* replan: a side keeps what its new list has and its light speaks for; else it goes to
   the planned one at once, and on from there only if it was without light before */
inline replan(i, s) {
	x = 2 * i + s;
	if
	:: list[x] == 0 -> turn(i, s, i); busy[x] = 0; todo[x] = 0; follow[x] = 0
	:: list[x] != 0 && lit[x] && MATES(applied[i], i, face[x]) -> follow[x] = 2; busy[x] = 0; todo[x] = 0
	:: else ->
		todo[x] = (face[x] != i && !lit[x] -> list[x] & ~NEAR(list[x]) : 0);
		busy[x] = 1; follow[x] = 2; turn(i, s, AT(i, s, NEAR(list[x])))
	fi
}

inline commit(i, p) {
	MUST(undecided, HAS(decided, p));
	applied[i] = p; staged[i] = 0;
	observe();
	replan(i, 0);
	replan(i, 1);
	printf("node %d applies %d\n", i, p); said(i, 0); said(i, 1);
	observe()
}

inline still(i, s) { x = 2 * i + s; busy[x] = 0; todo[x] = 0; follow[x] = 0 }

#define SIDE(s) \
	:: d_step { may[2 * i + s] & ANSWER -> \
		x = 2 * i + s; busy[x] = 1; todo[x] = 0; turn(i, s, AT(i, s, NEAR(asks[x]))); said(i, s); observe() } \
	:: d_step { may[2 * i + s] & SETTLE -> \
		x = 2 * i + s; busy[x] = 0; todo[x] = 0; if :: face[x] == AT(i, s, NEAR(list[x])) -> follow[x] = 0 :: else fi; observe() } \
	:: d_step { may[2 * i + s] & STEP -> step(i, s); said(i, s); observe() } \
	:: d_step { may[2 * i + s] & FOLLOW -> /* where it had light it goes back to */ \
		x = 2 * i + s; if :: asks[x] & NEAR(list[x]) :: else -> follow[x] = 1 fi; busy[x] = 1; \
		todo[x] = (face[x] != i -> list[x] & ~NEAR(list[x]) : 0); \
		turn(i, s, AT(i, s, NEAR(list[x]))); said(i, s); observe() }

#define HEAR(p) \
	:: d_step { p <= used && i != off && i != dark && HAS(parts[p], i) && p > applied[i] && p > staged[i] -> staged[i] = p; okays[p] = okays[p] | (1 << i) } \
	:: d_step { i != off && i != dark && staged[i] == p && HAS(decided, p) -> commit(i, p) }

proctype node(byte i) {
	do
	SIDE(0)
	SIDE(1)
	HEAR(2)
#if PLANS > 2
	HEAR(3)
#endif
#if PLANS > 3
	HEAR(4)
#endif
	:: d_step { off == N && dark != i -> off = i; printf("node %d off\n", i); observe() }
	:: d_step { off == i -> off = N; /* it takes its light as it finds it, but what no plan of its has */
		if :: F(i, 0) != i && !MATES(applied[i], i, F(i, 0)) -> turn(i, 0, i) :: else fi;
		if :: F(i, 1) != i && !MATES(applied[i], i, F(i, 1)) -> turn(i, 1, i) :: else fi;
		still(i, 0); still(i, 1); printf("node %d on\n", i); said(i, 0); said(i, 1); observe() }
#ifdef POWER
	:: d_step { dark == N && off != i -> dark = i; turn(i, 0, i); turn(i, 1, i); still(i, 0); still(i, 1); observe() }
#endif
	od
}

#ifdef LIAR
proctype lies() {
	do
	:: d_step { F(N - 1, 0) == N - 1 -> turn(N - 1, 0, N - 2); observe() }
	:: d_step { F(N - 1, 0) != N - 3 -> turn(N - 1, 0, N - 3); observe() }
	:: d_step { F(N - 1, 0) != N - 1 -> turn(N - 1, 0, N - 1); observe() }
	od
}
#endif

inline propose(c, o, who) {
	used++;
	cut[used] = c; out[used] = o; parts[used] = who; cur = used;
	printf("prepare %d: rings from 0 and %d without %d, asks %d\n", used, cut[used], out[used], parts[used]);
#ifdef LIAR
	okays[used] = who & (1 << (N - 1));
#endif
}

#ifdef UNPREPARED
#define READY (okays[cur] != 0)
#else
#define READY ((parts[cur] & ~okays[cur]) == 0)
#endif
#ifdef STEPPED
#define BOUND(o) 1
#define WHO (ALL & ~(1 << owed))
#else
#define BOUND(o) (owed == N || owed == (o))
#define WHO ALL
#endif
#define MAY (used < PLANS)

/* with one left out, asked or stepped over; a ring of who is left */
#define WITHOUT(c, o) \
	:: d_step { MAY && owed == N -> propose(c, o, ALL) } \
	:: d_step { MAY && BOUND(o) -> propose(c, o, ALL & ~(1 << (o))) }

proctype planner() {
	do
	:: d_step { MAY && BOUND(N) -> propose(N, N, WHO) }
	:: d_step { MAY && BOUND(N) -> propose(N / 2, N, WHO) }
	WITHOUT(N, 1)
	WITHOUT(N, N - 1)
	WITHOUT(N / 2, 1)
	WITHOUT(N, 0)
#if N > 3
	WITHOUT(N, 2)
	WITHOUT(N / 2, 2)
#endif
	:: d_step { MAY && owed != N -> propose(cut[head], out[head], 1 << owed) } /* told that it is idle */
	:: d_step { cur != 0 && READY ->
		decided = decided | (1 << cur);
		if
		:: out[cur] < N && !HAS(parts[cur], out[cur]) -> owed = out[cur]
		:: out[cur] == N -> owed = N
		:: else
		fi;
		printf("decide %d\n", cur); head = cur; cur = 0 }
	:: d_step { owed != N && (owed >= HONEST || HAS(parts[applied[owed]], owed) && applied[owed] > 1 && out[applied[owed]] == owed) -> owed = N }
	od
}

/* Rest: no side moves any more. */
#define MOVES(i) ((may[2 * (i)] | may[2 * (i) + 1]) & ~WAIT)
#define WAITS(i) ((may[2 * (i)] | may[2 * (i) + 1]) & WAIT)
/* due: a decided plan is on its way to a node, and is sent until it has that or a later one */
#define DUE(p, i) (HAS(decided, p) && applied[i] < p && HAS(parts[p], i))
#if PLANS > 3
#define PENDING(i) (DUE(2, i) || DUE(3, i) || DUE(4, i))
#elif PLANS > 2
#define PENDING(i) (DUE(2, i) || DUE(3, i))
#else
#define PENDING(i) DUE(2, i)
#endif
#define PRESENT(i) ((i) < HONEST && (i) != off && (i) != dark)
#define JOINED(i, j) (F(i, 1) == (j) && F(j, 0) == (i))
/* HASIT: the node has what was decided last, or is no part of the fabric's light */
#define HASIT(i) ((i) == out[head] || (i) == dark || (i) < HONEST && (i) != off && cut[applied[i]] == cut[head] && out[applied[i]] == out[head])
#define ALONE(i) (out[head] != (i) || !PRESENT(i) || F(i, 0) == (i) && F(i, 1) == (i))

#define PAIR(i, j) \
	MUST(stranger, !(PRESENT(i) && PRESENT(j) && JOINED(i, j) && !PENDING(i) && !PENDING(j)) || RING(applied[i], i) == RING(applied[j], j))

proctype judge() {
	do
	:: d_step { (MOVES(0) | MOVES(1) | MOVES(2) | MOVES(N - 1)) == 0 ->
		MUST(closed, (WAITS(0) | WAITS(1) | WAITS(2) | WAITS(N - 1)) == 0);
		MUST(alone, !(HASIT(0) && HASIT(1) && HASIT(2) && HASIT(N - 1)) || ALONE(0) && ALONE(1) && ALONE(2) && ALONE(N - 1));
		PAIR(0, 1); PAIR(1, 2); PAIR(0, 2);
#if N > 3
		PAIR(2, 3); PAIR(1, 3);
#endif
		skip }
	od
}

init {
	d_step {
		used = 1; decided = 2; head = 1; cut[1] = N; out[1] = N; parts[1] = ALL;
		for (x : 0 .. N - 1) {
			applied[x] = 1;
			face[2 * x] = (x == 0 -> 0 : x - 1);
			face[2 * x + 1] = (x == N - 1 -> x : x + 1)
		}
		observe()
	}
	atomic {
		byte i;
		for (i : 0 .. HONEST - 1) { run node(i) }
		run planner();
#ifdef LIAR
		run lies();
#endif
		run judge()
	}
}
