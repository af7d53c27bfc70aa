//! Counters as kernels really give them, and what they mean.

use prony_types::ThreadLoad;

use super::*;

/// Ten seconds of a cell on one CPU of its own.
fn quiet() -> LoadCounters {
    LoadCounters {
        wall_s: 10.0,
        cpus: 1,
        cpu_s: Some(9.95),
        run_queue_wait_s: Some(0.02),
        longest_wait_s: Some(0.02),
        involuntary_switches: Some(40),
        busy_s: Some(10.0),
        steal_s: Some(0.0),
    }
}

fn share(load: LoadCounters) -> f64 {
    others_share(&load, 0.0, false).unwrap()
}

fn says(load: LoadCounters) -> Option<(Verdict, String)> {
    finding(record(&[load], 0.0, false).as_ref())
}

#[test]
fn a_busy_loop_on_the_same_cpu_takes_half() {
    let busy = LoadCounters { cpu_s: Some(5.0), run_queue_wait_s: Some(4.9), longest_wait_s: Some(4.9), ..quiet() };
    let (verdict, reason) = says(busy).unwrap();
    assert_eq!(verdict, Verdict::Unstable);
    assert_eq!(
        reason,
        "others took 49 % of the CPU time this cell asked for (run-queue wait 4.9 s in 10.0 s, 40 involuntary \
         switches); measure again on a quiet machine"
    );
    assert_eq!(says(quiet()), None, "and a quiet machine needs no word");
}

#[test]
fn between_one_and_five_percent_it_is_a_note() {
    let with = |wait| LoadCounters { cpu_s: Some(9.0), run_queue_wait_s: wait, longest_wait_s: wait, ..quiet() };
    assert_eq!(says(with(Some(0.1))), None);
    assert_eq!(says(with(Some(0.11))).unwrap().0, Verdict::Valid);
    assert_eq!(says(with(Some(0.5))).unwrap().0, Verdict::Valid);
    assert_eq!(says(with(Some(0.51))).unwrap().0, Verdict::Unstable);
}

#[test]
fn four_threads_on_two_cpus_wait_for_themselves() {
    let own = LoadCounters {
        cpus: 2,
        cpu_s: Some(16.0),
        run_queue_wait_s: Some(15.0),
        longest_wait_s: Some(4.0),
        busy_s: Some(16.1),
        ..quiet()
    };
    assert!(share(own) < NOTED_SHARE + 0.001, "{}", share(own));
    // Without the times of the CPUs only what they had left is known.
    assert!(share(LoadCounters { cpu_s: Some(19.9), busy_s: None, ..own }) < NOTED_SHARE + 0.001);
    let with_neighbour = LoadCounters { cpu_s: Some(11.0), busy_s: Some(20.0), ..own };
    assert!(share(with_neighbour) > 0.3);
}

#[test]
fn one_taken_cpu_of_many_holds_up_the_whole_pool() {
    // The other 63 threads sleep half of the time, at the end of every layer.
    let pool = LoadCounters {
        cpus: 64,
        cpu_s: Some(320.0),
        run_queue_wait_s: Some(5.0),
        longest_wait_s: Some(5.0),
        busy_s: Some(325.0),
        ..quiet()
    };
    assert_eq!(share(pool), 0.5);
}

#[test]
fn a_gpu_cell_is_held_up_by_its_one_thread_and_only_that_much() {
    let gpu = LoadCounters {
        cpu_s: Some(0.5),
        run_queue_wait_s: Some(0.2),
        longest_wait_s: Some(0.2),
        busy_s: Some(9.0),
        ..quiet()
    };
    assert_eq!(share(gpu), 0.02, "of the wall time, not of the little CPU time");
    let held_up = LoadCounters { run_queue_wait_s: Some(2.0), longest_wait_s: Some(2.0), ..gpu };
    assert_eq!(says(held_up).unwrap().0, Verdict::Unstable);
}

#[test]
fn work_that_moves_between_two_threads_is_held_up_by_the_waits_of_both() {
    let turns = LoadCounters { cpu_s: Some(5.0), run_queue_wait_s: Some(5.0), longest_wait_s: Some(3.5), ..quiet() };
    assert_eq!(share(turns), 0.5);
}

#[test]
fn stolen_time_counts_whether_or_not_the_kernel_charges_it_to_the_cell() {
    for cpu_s in [10.0, 9.0] {
        let stolen = LoadCounters { cpu_s: Some(cpu_s), steal_s: Some(1.0), ..quiet() };
        let (verdict, reason) = says(stolen).unwrap();
        assert_eq!(verdict, Verdict::Unstable, "{cpu_s}");
        assert!(reason.contains("1.0 s stolen by the hypervisor"), "{reason}");
    }
}

#[test]
fn without_accounts_of_waiting_only_a_single_thread_can_be_judged() {
    let bare = LoadCounters { cpu_s: Some(5.1), run_queue_wait_s: None, longest_wait_s: None, ..quiet() };
    let serial = record(&[bare], 0.0, true);
    assert!(matches!(finding(serial.as_ref()), Some((Verdict::Unstable, reason)) if reason.contains("5.1 s of CPU")));
    let stopped = record(&[LoadCounters { cpu_s: Some(7.0), ..bare }], 3.0, true).unwrap();
    assert_eq!(stopped.others_share, Some(0.0), "a process that was stopped asked for nothing");
    let (verdict, reason) = says(bare).unwrap();
    assert_eq!(verdict, Verdict::Valid);
    assert!(reason.contains("could not be ruled out"), "{reason}");
    assert_eq!(finding(None).unwrap().1, reason);
}

#[test]
fn the_worst_round_is_named_where_it_stands_out() {
    let burst = LoadCounters { cpu_s: Some(6.0), run_queue_wait_s: Some(4.0), longest_wait_s: Some(4.0), ..quiet() };
    let load = record(&[quiet(), quiet(), burst], 0.0, false).unwrap();
    assert_eq!(load.worst_round_share, Some(0.4));
    let (_, reason) = finding(Some(&load)).unwrap();
    assert!(reason.contains(", 40 % in the worst round;"), "{reason}");
    assert_eq!(record(&[], 0.0, false), None);
}

#[test]
fn a_counter_that_one_round_lacks_is_not_summed_up() {
    let load = record(&[quiet(), LoadCounters { steal_s: None, ..quiet() }], 0.0, false).unwrap();
    assert_eq!((load.counters.steal_s, load.counters.wall_s), (None, 20.0));
    assert!(load.others_share.is_some());
}

#[test]
fn threads_that_begin_or_end_in_a_round_do_not_spoil_the_sums() {
    let thread = |id, wait_ns| ThreadLoad { id, wait_ns, involuntary_switches: Some(wait_ns / 100) };
    let snapshot = |t_ns, cpu_ns, threads| LoadSnapshot {
        t_ns,
        cpus: 2,
        cpu_ns: Some(cpu_ns),
        threads: Some(threads),
        busy_ns: Some(cpu_ns),
        steal_ns: None,
    };
    let before = snapshot(1_000_000_000, 500_000_000, vec![thread(1, 100), thread(2, 900_000_000)]);
    let after = snapshot(3_000_000_000, 700_000_000, vec![thread(1, 400), thread(3, 200)]);
    let load = between(&before, &after);
    assert_eq!((load.wall_s, load.cpu_s), (2.0, Some(0.2)));
    assert_eq!((load.run_queue_wait_s, load.longest_wait_s), (Some(5e-7), Some(3e-7)));
    assert_eq!((load.involuntary_switches, load.steal_s), (Some(5), None));
    let silent = LoadSnapshot { threads: None, ..after };
    assert_eq!(between(&before, &silent).run_queue_wait_s, None);
}
