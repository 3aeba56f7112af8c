/*
 * Terms, prepare and commit, as docs/protocol.md has them in sections 5 and 7:
 * node/fence.go and node/participant.go for members, planner/fence.go and
 * planner/member/txn.go for planners.
 *
 * The network: what was said stays said. Every desired state, decision and sign of
 * life may arrive at any time, in any order, again, or never; an answer counts
 * whenever its planner looks. So loss, repetition and delay need no rule of their own.
 *
 * Members are 0 to N-1. Member 0 dies at any moment, as often as it likes, and comes
 * back from what its disk then held: members are alike, so one that dies stands for any
 * one. With LIAR the last one answers OK to every prepare, holds none, and claims the
 * highest term that there is.
 *
 * Planner 0 is in service in term 1. Planner 1 starts from a copy of its store of then,
 * hears the other or not, and both die and start again: LIVES starts in all. A planner
 * gives up what it prepares, or goes back to listening, whenever it likes, which covers
 * every time-out and every refusal.
 *
 * Explored to the end for N members, PLANS plans given out, TERMS terms, LIVES starts.
 *
 * Properties, by the invariants of node/doc.go:
 *   monotone   no term or generation that a member has answered with goes back
 *   undecided  no half switch: nobody applies what nobody decided, or is no part of
 *   kept       no half switch: who has to hold a decided plan holds it, or a higher one
 *   number     monotone: no two decided plans of one life have the same number
 *   life       monotone: one member is part of decided plans of one term by one life only
 *   liar       no word of one moves a term or a generation while others are there
 *
 * Defects to plant, one each: REUSED, UNPREPARED, FORGETS, BELIEVED.
 */
#ifndef N
#define N 3
#endif
#ifndef PLANS
#define PLANS 3
#endif
#ifndef TERMS
#define TERMS 3
#endif
#ifndef LIVES
#define LIVES 3
#endif
#define ALL   ((1 << N) - 1)
#define HAS(set, i) (((set) >> (i)) & 1)

/* Plans, from 1; 0 is none, and below all. */
byte pterm[PLANS + 1], pgen[PLANS + 1], plife[PLANS + 1], parts[PLANS + 1], okays[PLANS + 1];
byte used, decided;
#define BELOW(a, b) (pterm[a] < pterm[b] || pterm[a] == pterm[b] && pgen[a] < pgen[b])
#define ALIKE(a, b) (pterm[a] == pterm[b] && pgen[a] == pgen[b])

/* Members: highest term heard, from which life (0: it did not say), plan applied, plan
   staged, decision that came before its plan. Of member 0 what its disk holds, and the
   prepares whose OK waits for that, and the highest plan that it has answered OK. */
byte seen[N], from[N], applied[N], staged[N], early[N];
byte diskseen, diskfrom, diskapplied, diskstaged, waiting, told;

/* Signs of life that were sent: by term, a bit each life. */
byte signs[TERMS + 1];

mtype = { ok, stale, conflict, notstaged };

/* MUST: a property, by its name; a trail that breaks one ends with it. */
mtype = { monotone, undecided, kept, number, life, liar };
mtype broken;
#define MUST(law, holds) if :: holds :: else -> broken = law; assert(false) fi

#define HOLDS(a, s, p) ((a) == (p) || (s) == (p) || BELOW(p, a) || BELOW(p, s))

#ifdef LIAR
#define HONEST (N - 1)
#else
#define HONEST N
#endif

/* Used within one step, 0 between them: a member's answer, counters. */
mtype code;
#ifdef REPLAY
mtype was; /* the last one */
#endif
byte pp, qq, there;

inline print(i) {
#ifdef REPLAY
	was = code;
#endif
	printf("  %e seen %d.%d applied %d staged %d early %d\n", code, seen[i], from[i], applied[i], staged[i], early[i])
}

/* seeterm: participant.seeTerm */
inline seeterm(i, t, l) {
	if
	:: t > seen[i] || t == seen[i] && from[i] == 0 && l != 0 -> seen[i] = t; from[i] = l
	:: else
	fi
}

inline apply(i, p) {
	MUST(undecided, HAS(decided, p) && HAS(parts[p], i));
	MUST(monotone, BELOW(applied[i], p));
	staged[i] = 0; applied[i] = p
}

/* answer: an OK to a prepare leaves when what it promises is on disk. */
inline answer(i, p) {
	if
	:: i == 0 -> waiting = waiting | (1 << p)
	:: else -> okays[p] = okays[p] | (1 << i)
	fi
}

/* stage: fence.judge, participant.stage; then the decision that came early */
inline stage(i, p) {
	if
	:: pterm[p] < seen[i] || pterm[p] == seen[i] && from[i] != 0 && from[i] != plife[p] -> code = stale
	:: else ->
		if
		:: BELOW(p, applied[i]) || !ALIKE(p, applied[i]) && BELOW(p, staged[i]) -> code = stale
		:: applied[i] == p || !ALIKE(p, applied[i]) && staged[i] == p -> code = ok
		:: ALIKE(p, applied[i]) && applied[i] != p || !ALIKE(p, applied[i]) && ALIKE(p, staged[i]) && staged[i] != p -> code = conflict
		:: else -> code = ok; staged[i] = p
		fi
	fi;
	seeterm(i, pterm[p], plife[p]);
	printf("stage %d %d = %d.%d life %d\n", i, p, pterm[p], pgen[p], plife[p]);
	print(i);
	if
	:: code == ok ->
		answer(i, p);
		if
		:: early[i] != 0 && ALIKE(early[i], staged[i]) ->
			code = conflict;
			if :: early[i] == staged[i] -> code = ok; apply(i, early[i]) :: else fi;
			early[i] = 0;
			printf("overdue %d\n", i);
			print(i)
		:: else
		fi
	:: else
	fi;
	code = 0
}

/* With STRAY a decision reaches those too who are no part of its plan: the topic is
   their ring's. Else it reaches its parts alone, who have all prepared. */
#ifdef STRAY
#define HEARS(p, i) 1
#else
#define HEARS(p, i) HAS(parts[p], i)
#endif

/* decide: fence.weigh, participant.decide; a decision does not say its life */
inline decide(i, p) {
	if
	:: applied[i] == p -> code = ok
	:: applied[i] != p && ALIKE(applied[i], p) -> code = conflict
	:: !ALIKE(applied[i], p) && (pterm[p] < seen[i] || BELOW(p, applied[i]) || BELOW(p, staged[i])) -> code = stale
	:: else ->
		if
		:: staged[i] == p -> code = ok
		:: staged[i] != p && ALIKE(staged[i], p) -> code = conflict
		:: else -> code = notstaged; early[i] = p
		fi
	fi;
	seeterm(i, pterm[p], 0);
	if :: code == ok && applied[i] != p -> apply(i, p) :: else fi;
	printf("decide %d %d = %d.%d\n", i, p, pterm[p], pgen[p]);
	print(i);
	code = 0
}

inline sign(i, t, l) {
	seeterm(i, t, l);
	code = ok;
	printf("sign %d %d.%d\n", i, t, l);
	print(i);
	code = 0
}

inline flush() {
	diskseen = seen[0]; diskfrom = from[0]; diskapplied = applied[0]; diskstaged = staged[0];
	pp = 1;
	do
	:: pp <= PLANS ->
		if :: HAS(waiting, pp) -> okays[pp] = okays[pp] | 1; if :: BELOW(told, pp) -> told = pp :: else fi :: else fi;
		pp++
	:: else -> break
	od;
	pp = 0; waiting = 0;
	printf("flush 0\n")
}

inline restart() {
	seen[0] = diskseen; from[0] = diskfrom; applied[0] = diskapplied;
#ifdef FORGETS
	staged[0] = 0;
#else
	staged[0] = diskstaged;
#endif
	early[0] = 0; waiting = 0; code = ok;
	printf("restart 0\n");
	print(0);
	code = 0
}

/* settled: what must hold of every plan that is decided, each a loop less to walk */
#define KEPT(p, i) MUST(kept, !HAS(parts[p], i) || HOLDS(applied[i], staged[i], p))
#define APART(p, q) \
	MUST(number, !HAS(decided, q) || !ALIKE(p, q) || plife[p] != plife[q]); \
	MUST(life, !HAS(decided, q) || pterm[p] != pterm[q] || plife[p] == plife[q] || (parts[p] & parts[q] & ((1 << HONEST) - 1)) == 0)
inline holds(p) {
	if
	:: HAS(decided, p) ->
		MUST(kept, !HAS(parts[p], 0) || HOLDS(diskapplied, diskstaged, p));
		KEPT(p, 0); KEPT(p, 1);
		if :: HONEST > 2 -> KEPT(p, 2) :: else fi;
		if :: HONEST > 3 -> KEPT(p, N - 1) :: else fi;
		if :: p > 1 -> APART(p, 1) :: else fi;
		if :: p > 2 -> APART(p, 2) :: else fi
	:: else
	fi
}
inline settled() {
	holds(1);
	if :: PLANS > 1 -> holds(2) :: else fi;
	if :: PLANS > 2 -> holds(PLANS) :: else fi
}

#define LEARN(t) \
	:: d_step { HAS(signs[t], 1) && (t > seen[i] || t == seen[i] && from[i] == 0) -> sign(i, t, 1) } \
	:: d_step { HAS(signs[t], 2) && (t > seen[i] || t == seen[i] && from[i] == 0) -> sign(i, t, 2) } \
	:: d_step { HAS(signs[t], 3) && (t > seen[i] || t == seen[i] && from[i] == 0) -> sign(i, t, 3) }

#define HEAR(p) \
	:: d_step { p <= used && HAS(parts[p], i) -> stage(i, p) } \
	:: d_step { HAS(decided, p) && HEARS(p, i) -> decide(i, p); settled() }

proctype member(byte i) {
	do
	HEAR(1)
#if PLANS > 1
	HEAR(2)
#endif
#if PLANS > 2
	HEAR(3)
#endif
#if PLANS > 3
	HEAR(4)
#endif
	LEARN(1)
	LEARN(2)
#if TERMS > 2
	LEARN(3)
#endif
#if TERMS > 3
	LEARN(4)
#endif
	:: d_step { i == 0 && (waiting != 0 || diskseen != seen[0] || diskfrom != from[0] || diskapplied != applied[0] || diskstaged != staged[0]) -> flush(); settled() }
	:: d_step { i == 0 -> restart(); settled() }
	od
}

/* Planners: what their stores hold, and what they are about. */
byte term[2], gen[2], born[2], head[2], cur[2], lives;

/* known: the term that more than half of those who are there know of, above ours or
   ours from another life, with who as its witnesses; else 0. planner.voices. The liar
   knows of the highest term that there is. */
#define SPEAKS(i, t) (seen[i] > t || seen[i] == t && (t > term[k] || from[i] != 0 && from[i] != born[k]))
inline known(k, set) {
	v = TERMS - 1; there = 0; pp = 0;
	do
	:: pp < N -> there = there + HAS(set, pp); pp++
	:: else -> break
	od;
	do
	:: v >= term[k] ->
		pp = 0; qq = 0; who = 0;
		do
		:: pp < N ->
			if
			:: HAS(set, pp) && (pp >= HONEST || SPEAKS(pp, v)) -> qq++; who = who | (1 << pp)
			:: else
			fi;
			pp++
		:: else -> break
		od;
#ifdef BELIEVED
		if :: qq > 0 -> break :: else fi;
#else
		if :: 2 * qq > there -> break :: else fi;
#endif
		v--
	:: else -> v = 0; who = 0; break
	od;
	pp = 0; qq = 0; there = 0;
	MUST(liar, who == 0 || (who & ((1 << HONEST) - 1)) != 0 || set == who)
}

/* found: a start adopts what runs: the highest generation that two of those who are
   there know of, or the only one; planner/member FoundGeneration. The liar knows of one
   that nobody gave out. */
#define TOP (2 * PLANS)
inline found(k, set) {
	there = 0; pp = 0; qq = 0; first = 0; who = 0;
	do
	:: pp < N ->
		if
		:: HAS(set, pp) ->
			there++;
			v = (pp >= HONEST -> TOP : pgen[staged[pp]]);
			if :: pp < HONEST && v < pgen[applied[pp]] -> v = pgen[applied[pp]] :: else fi;
			if :: pp < HONEST && who < v -> who = v :: else fi;
			if
			:: v > first -> qq = first; first = v
			:: v <= first && v > qq -> qq = v
			:: else
			fi
		:: else
		fi;
		pp++
	:: else -> break
	od;
#ifdef BELIEVED
	qq = first;
#endif
	if :: there == 1 -> qq = first :: else fi;
	gen[k] = (qq > head[k] -> qq : head[k]);
	MUST(liar, there < 2 || gen[k] <= head[k] || gen[k] <= who);
	there = 0; pp = 0; qq = 0; first = 0; who = 0; v = 0
}

/* heard: those who are there */
#define EACH(i) if :: set = set | (1 << i) :: skip fi
inline heard() {
	EACH(0); EACH(1); EACH(2);
#if N > 3
	EACH(3)
#endif
}

inline propose(k, whom) {
	used++;
#ifdef REUSED
	if :: gen[k] == 0 -> gen[k] = 1 :: else fi;
#else
	gen[k]++;
#endif
	pterm[used] = term[k]; pgen[used] = gen[k]; plife[used] = born[k]; parts[used] = whom;
#ifdef LIAR
	okays[used] = whom & (1 << (N - 1));
#endif
	cur[k] = used;
	printf("prepare planner %d plan %d = %d.%d life %d for %d\n", k, used, term[k], gen[k], born[k], whom)
}

#ifdef UNPREPARED
/* a decision does not wait for the one that dies */
#define READY(p) ((parts[p] & ~okays[p] & ~1) == 0)
#else
#define READY(p) ((parts[p] & ~okays[p]) == 0)
#endif

#define IDLE (born[k] != 0 && used < PLANS)

inline raise(k) {
	if :: v < term[k] -> v = term[k] :: else fi;
	term[k] = v + 1;
	signs[term[k]] = signs[term[k]] | (1 << born[k]);
	cur[k] = 0; set = 0; v = 0; who = 0;
	printf("raise planner %d life %d term %d\n", k, born[k], term[k])
}

/* A planner serves, prepares, decides. A plan that it gives up is one that it does
   not decide: it prepares another. */
proctype planner(byte k) {
	byte set, v, who, first;
	do
	:: atomic { lives < LIVES && term[k] < TERMS -> /* it dies if it lives, and starts */
		heard();
		d_step { lives++; born[k] = lives; found(k, set); known(k, set); raise(k) } }
	:: atomic { born[k] != 0 && term[k] < TERMS -> /* in service it hears of another */
		heard();
		d_step {
			known(k, set);
			if :: v != 0 -> raise(k) :: else -> set = 0 fi
		} }
	:: d_step { IDLE -> propose(k, ALL) }
	:: d_step { IDLE -> propose(k, 1) }
	:: d_step { IDLE -> propose(k, ALL - 1) }
	:: d_step { cur[k] != 0 && READY(cur[k]) ->
		decided = decided | (1 << cur[k]);
		head[k] = gen[k];
		printf("decide planner %d plan %d\n", k, cur[k]);
		cur[k] = 0;
		settled() }
	od
}

#ifdef REPLAY
/* A run of the machines, written by node's tests: every step, and what it came to. */
#define GIVEN(p, t, g, l) pterm[p] = t; pgen[p] = g; plife[p] = l; parts[p] = ALL; used = p; decided = decided | (1 << p);
#define IS(i, c, t, l, a, s, e) assert(was == c && seen[i] == t && from[i] == l && applied[i] == a && staged[i] == s && early[i] == e);
init {
	d_step {
#include "machine.txt"
		skip
	}
}
#else
init {
	d_step { lives = 1; born[0] = 1; term[0] = 1; term[1] = 1; signs[1] = 2 }
	atomic {
		byte i;
		for (i : 0 .. HONEST - 1) { run member(i) }
		run planner(0);
		run planner(1)
	}
}
#endif
