/* test_work_ring.c - how cores hand block groups to each other, where memory is as weakly ordered as C11 allows.
 *
 * The engine's own source is compiled here over a model of <stdatomic.h>: a load gives any value that the standard lets
 * it give, a newer one or an older one, and between any two atomic accesses another core may come first. All choices
 * are tried in turn, up to the bounds below. A machine that runs the tests shows few of them (x86-64 has no stale
 * loads at all), and the thread sanitizer looks for races on plain data alone.
 *
 * The model: each store to an atomic object is kept, with what its core had seen by then. A core may not go back behind
 * what it has seen of an object; a load that acquires from a store that releases has seen what that store's core had;
 * an exchange reads the last store. (These are release and acquire of C11; there are no fences and no seq_cst here.)
 */
#include "unit.h"

#include <stdatomic.h>

#define CORES 3u
#define ACTIONS 6u     /* of all cores in one run: putting groups in, or work_once() */
#define PREEMPTIONS 2u /* of them in the middle of another one */
#define STALE 2u       /* loads that give an older value than they could */
#define OBJECTS 16u
#define STORES 64u /* to one object in one run */
#define CHOICES 512u

static unsigned model_load(const volatile void *at, memory_order order);
static void model_store(const volatile void *at, unsigned value, memory_order order);
static unsigned model_add(const volatile void *at, unsigned value, memory_order order);
static bool model_exchange(const volatile void *at, unsigned *expected, unsigned value, memory_order good,
                           memory_order bad);

#undef atomic_load_explicit
#undef atomic_store_explicit
#undef atomic_fetch_add_explicit
#undef atomic_fetch_sub_explicit
#undef atomic_compare_exchange_weak_explicit
#define atomic_load_explicit(AT, ORDER) model_load(AT, ORDER)
#define atomic_store_explicit(AT, VALUE, ORDER) model_store(AT, VALUE, ORDER)
#define atomic_fetch_add_explicit(AT, VALUE, ORDER) model_add(AT, VALUE, ORDER)
#define atomic_fetch_sub_explicit(AT, VALUE, ORDER) model_add(AT, 0u - (VALUE), ORDER)
#define atomic_compare_exchange_weak_explicit(AT, EXPECTED, VALUE, GOOD, BAD)                                          \
    model_exchange(AT, EXPECTED, VALUE, GOOD, BAD)

static enum k3huf_status take_group(const struct k3huf_block *block);
#define k3huf_decode_blocks(TABLE, WORKSPACE, BLOCK, N, CRC) ((void)(N), take_group(BLOCK))

#define K3HUF_INFLIGHT_SLOTS 2u
#define K3HUF_INFLIGHT_GROUP_BYTES 8192u
#undef fail /* CMocka's name; the engine has a function of it */
#define fail engine_fail
#include "inflight.c"
#undef fail
#define fail() _fail(__FILE__, __LINE__)

/* ---------------------------------------------------------------------------------------------------- choices ---- */

/* The choices of this run: those of the last one up to a place, there the next one, the first ones from there on. */
static struct { unsigned taken, of; } choice[CHOICES];
static unsigned chosen, known;

/* A number below `n`. */
static unsigned choose(unsigned n) {
    if (n == 1) return 0;
    if (chosen == known) {
        assert_true(known < CHOICES);
        choice[known].taken = 0;
        choice[known++].of = n;
    }
    assert_int_equal(choice[chosen].of, n);
    return choice[chosen++].taken;
}

/* false: all have been tried. */
static bool next_run(void) {
    while (known > 0 && choice[known - 1].taken + 1 == choice[known - 1].of)
        known--;
    if (known > 0) choice[known - 1].taken++;
    chosen = 0;
    return known > 0;
}

/* ----------------------------------------------------------------------------------------------------- memory ---- */

/* What a core has seen: of each object the number of its newest store. */
struct view {
    uint8_t of[OBJECTS];
};

static struct {
    const volatile void *at;
    unsigned stores;
    struct {
        unsigned value;
        struct view view; /* given to whoever acquires from it */
    } store[STORES];
} object[OBJECTS];
static struct view seen[CORES];
static unsigned core; /* the one that runs */
static bool quiet;    /* no choices: the newest of everything, nobody in between */
static unsigned stale;

static void between(const volatile void *at);

static unsigned find(const volatile void *at) {
    for (unsigned i = 0; i < OBJECTS; i++) {
        if (object[i].at == NULL) {
            object[i].at = at;
            object[i].stores = 1; /* what atomic_init() or C put there: 0 */
            memset(&object[i].store[0], 0, sizeof object[i].store[0]);
        }
        if (object[i].at == at) return i;
    }
    fail_msg("the model has too few objects");
    return 0;
}

static bool acquires(memory_order order) { return order == memory_order_acquire || order == memory_order_acq_rel; }
static bool releases(memory_order order) { return order == memory_order_release || order == memory_order_acq_rel; }

static void join(struct view *to, const struct view *from) {
    for (unsigned i = 0; i < OBJECTS; i++)
        if (to->of[i] < from->of[i]) to->of[i] = from->of[i];
}

static unsigned read_store(unsigned which, unsigned number, memory_order order) {
    seen[core].of[which] = (uint8_t)number;
    if (acquires(order)) join(&seen[core], &object[which].store[number].view);
    return object[which].store[number].value;
}

/* The newest store to an object or an older one that this core may still read. */
static unsigned some_store(unsigned which) {
    const unsigned newest = object[which].stores - 1;
    if (quiet || stale == STALE) return newest;
    const unsigned back = choose(newest - seen[core].of[which] + 1);
    stale += back > 0;
    return newest - back;
}

/* `exchange`: what others released by the store before is passed on. */
static void add_store(unsigned which, unsigned value, memory_order order, bool exchange) {
    const unsigned number = object[which].stores++;
    assert_true(number < STORES);
    seen[core].of[which] = (uint8_t)number;
    object[which].store[number].value = value;
    memset(&object[which].store[number].view, 0, sizeof(struct view));
    object[which].store[number].view.of[which] = (uint8_t)number;
    if (releases(order)) object[which].store[number].view = seen[core];
    if (exchange) join(&object[which].store[number].view, &object[which].store[number - 1].view);
}

static unsigned model_load(const volatile void *at, memory_order order) {
    between(at);
    const unsigned which = find(at);
    return read_store(which, some_store(which), order);
}

static void model_store(const volatile void *at, unsigned value, memory_order order) {
    between(at);
    add_store(find(at), value, order, false);
}

static unsigned model_add(const volatile void *at, unsigned value, memory_order order) {
    between(at);
    const unsigned which = find(at);
    const unsigned before = read_store(which, object[which].stores - 1, order);
    add_store(which, before + value, order, true);
    return before;
}

static bool model_exchange(const volatile void *at, unsigned *expected, unsigned value, memory_order good,
                           memory_order bad) {
    between(at);
    const unsigned which = find(at);
    const unsigned newest = object[which].stores - 1;
    if (object[which].store[newest].value == *expected) {
        (void)read_store(which, newest, good);
        add_store(which, value, good, true);
        return true;
    }
    unsigned number = some_store(which);
    if (object[which].store[number].value == *expected) number = newest; /* then it would not have failed */
    *expected = read_store(which, number, bad);
    return false;
}

/* Plain data: whoever uses it must have seen its last store, or there is a race. */
static void plain_store(const volatile void *at) { add_store(find(at), 0, memory_order_relaxed, false); }
static bool plain_seen(const volatile void *at) {
    const unsigned which = find(at);
    return seen[core].of[which] == object[which].stores - 1;
}

/* ----------------------------------------------------------------------------------------------------- engine ---- */

static struct k3huf_inflight engine;
static struct k3huf_record record;
static const uint8_t entry[K3HUF_INDEX_ENTRY_BYTES];
static bool in_ring[K3HUF_INFLIGHT_SLOTS];
static unsigned put, taken, finished, most_taken;

static uint64_t ticks(void *context) {
    (void)context;
    return 0;
}
static void signal_cores(void *context) { (void)context; }
static const struct k3huf_port port = {.ticks = ticks, .signal = signal_cores};

/* In place of decoding: which group has a core got hold of, and may it have it? */
static enum k3huf_status take_group(const struct k3huf_block *block) {
    for (unsigned slot = 0; slot < K3HUF_INFLIGHT_SLOTS; slot++) {
        struct k3huf_group *const group = &engine.group[slot];
        if (block->coded != group->coded_buffer) continue;
        if (!in_ring[slot]) fail_msg("core %u takes group %u, which is not in the ring", core, slot);
        if (!plain_seen(group->coded_buffer))
            fail_msg("core %u decodes group %u before it sees its planes", core, slot);
        in_ring[slot] = false;
        taken++;
        plain_store(&group->status); /* as a result */
    }
    engine.core[core].block[0].status = K3HUF_OK;
    return K3HUF_OK;
}

static void start_engine(void) {
    memset(object, 0, sizeof object);
    memset(seen, 0, sizeof seen);
    memset(in_ring, 0, sizeof in_ring);
    put = taken = finished = 0;
    engine.port = &port;
    engine.record = &record;
    engine.tally = &record.completion;
    engine.from = engine.to = 0; /* nothing is written to a host */
    engine.stage[0].header = (struct k3huf_stripe_header){.raw_bytes = 2, .huf_bytes = 1};
    engine.stage[0].index = (struct k3huf_index){entry, 1, K3HUF_BLOCK_LOG2_MIN};
    engine.stage[0].groups = 0;
    for (unsigned slot = 0; slot < K3HUF_INFLIGHT_SLOTS; slot++) {
        struct k3huf_group *const group = &engine.group[slot];
        group->blocks = 1;
        group->coded.buffer = group->coded_buffer;
        group->raw.buffer = group->raw_buffer;
    }
}

/* Core 0: collect what is finished, then put the next free group into the ring. */
static void put_groups(void) {
    uint32_t busy = 0;
    uint32_t live = 0;
    const uint32_t before = record.completion.groups;
    (void)step_groups(&engine, &busy, &live);
    finished += record.completion.groups - before;
    for (unsigned slot = 0; slot < K3HUF_INFLIGHT_SLOTS; slot++) {
        struct k3huf_group *const group = &engine.group[slot];
        if (group_state(group) != K3HUF_GROUP_FREE) continue;
        if (!plain_seen(&group->status)) fail_msg("group %u is used again before its results are seen", slot);
        plain_store(group->coded_buffer); /* what a read has brought */
        engine.stage[0].groups++;
        atomic_store_explicit(&group->state, K3HUF_GROUP_READING, memory_order_relaxed);
        in_ring[slot] = true; /* from some moment in the next call on */
        put++;
        group_read(&engine, group);
        break;
    }
}

static unsigned actions, preemptions;
static bool busy_core[CORES];

/* Some core that is not in the middle of something does something. Numbers 0 ... CORES - 1: work_once(); CORES: core 0
 * puts groups in. */
static void act(unsigned what) {
    const unsigned before = core;
    core = what % CORES;
    busy_core[core] = true;
    actions++;
    if (what == CORES) {
        put_groups();
    } else {
        (void)work_once(&engine, core);
    }
    busy_core[core] = false;
    core = before;
}

/* Before an access to the ring others may come. (What they do to a group's state is the same whenever they do it.) */
static void between(const volatile void *at) {
    const bool ring = at == &engine.work_head || at == &engine.work_tail ||
                      (at >= (const volatile void *)engine.work && at < (const volatile void *)(&engine.work + 1));
    while (ring && !quiet && preemptions < PREEMPTIONS && actions < ACTIONS) {
        unsigned can[CORES + 1];
        unsigned n = 0;
        for (unsigned what = 0; what <= CORES; what++)
            if (!busy_core[what % CORES]) can[n++] = what;
        const unsigned what = choose(n + 1);
        if (what == n) return;
        preemptions++;
        act(can[what]);
    }
}

/* Whatever cores see and whoever comes first: each group is taken once, by a core that sees its planes. */
static void every_group_is_taken_once(void **state) {
    unsigned runs = 0;
    (void)state;
    do {
        start_engine();
        actions = preemptions = stale = 0;
        quiet = false;
        act(CORES);
        while (actions < ACTIONS)
            act(choose(CORES + 1));
        quiet = true;
        act(0);
        act(0);
        act(CORES);
        act(0);
        act(CORES);
        assert_int_equal(taken + 1, put); /* the last action put one more in */
        assert_int_equal(finished, taken);
        if (taken > most_taken) most_taken = taken;
        runs++;
    } while (next_run());
    assert_true(most_taken > K3HUF_INFLIGHT_SLOTS); /* slots were used again */
    (void)printf("work ring: %u runs\n", runs);
    assert_true(runs > 1000);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_group_is_taken_once)};
    return cmocka_run_group_tests_name("work_ring", tests, NULL, NULL);
}
