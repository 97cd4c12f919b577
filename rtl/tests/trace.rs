#![allow(unsafe_code, reason = "a driver is opened on a core")]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that panics has failed, which is its purpose"
)]
//! A trace: the core's signals and the runtime's in one file, on one time line. The runtime's are
//! the whole program's, so this program has one test.

#[path = "cores/skip.rs"]
mod skip;

use contigo::sim::{SimBoard, SimDevice};
use contigo::{Queue, Region};
use contigo_gemm8::{Gemm, Gemm8, Output};
use contigo_rtl::{RtlConfig, RtlModel};
use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

/// The changes of each signal of a VCD file: its scopes and name; time in picoseconds, value.
fn changes(text: &str) -> BTreeMap<String, Vec<(u64, String)>> {
    let (mut scopes, mut found, mut now) = (Vec::new(), BTreeMap::<String, Vec<_>>::new(), 0);
    // One wire that has several names has one sign.
    let mut names = BTreeMap::<&str, Vec<String>>::new();
    for line in text.lines().map(str::trim) {
        let words: Vec<_> = line.split_whitespace().collect();
        match words[..] {
            ["$scope", _, name, "$end"] => scopes.push(name),
            ["$upscope", "$end"] => drop(scopes.pop()),
            ["$var", _, _, id, name, ..] => {
                names.entry(id).or_default().push(format!("{}.{name}", scopes.join(".")))
            }
            [time] if time.starts_with('#') => {
                let time = time[1..].parse().unwrap();
                assert!(time >= now, "time runs backwards");
                now = time;
            }
            [] => {}
            // `b101 !`, or `1!`
            _ => {
                let (value, id) = line.strip_prefix('b').map_or_else(
                    || line.split_at(1),
                    |bus| bus.split_once(' ').unwrap_or_default(),
                );
                for name in names.get(id).into_iter().flatten() {
                    found.entry(name.clone()).or_default().push((now, value.to_owned()));
                }
            }
        }
    }
    found
}

#[test]
fn the_runtime_and_the_core_have_one_time_line() {
    let model = RtlModel::new("gemm8", RtlConfig::default());
    let Some(mut model) = skip::or_skip(model) else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gemm8.vcd");
    assert!(model.trace(&folder.path().join("none/gemm8.vcd")).is_err());
    model.trace(&file).unwrap();
    {
        let board = SimBoard::new(7);
        let region = Region::new(board.memory(64 << 10).unwrap()).unwrap();
        let pool = region.pool(4, 4096).unwrap();
        let core = SimDevice::with_model(&board, board.port(), model);
        // SAFETY: the window is a gemm8's, and has one driver.
        let mut queue =
            Queue::new(unsafe { Gemm8::open(core.window().unwrap()) }.unwrap(), 1).unwrap();
        let [a, b, bias, c] = [(); 4].map(|()| pool.take().unwrap());
        let job = Gemm { m: 1, n: 16, k: 16, output: Output::Int32 { relu: false } };
        let operands =
            [a.to_device(..16), b.to_device(..256), bias.to_device(..64), c.from_device(..64)];
        drop(queue.run(operands, &job.words(), Duration::from_millis(5)).unwrap());
    }
    let changes = changes(&fs::read_to_string(file).unwrap());
    let when = |name: &str, value: &str| {
        let all = changes
            .iter()
            .find(|(known, _)| known.ends_with(name))
            .unwrap_or_else(|| panic!("{name} is not there"));
        let found = all.1.iter().find(|(_, seen)| seen.trim_start_matches('0') == value);
        found.unwrap_or_else(|| panic!("{name} is never {value}: {:?}", all.1)).0
    };
    // The doorbell is a register's write; then the core reads, writes, and the job is over.
    let times = [
        when("runtime.access", "10"),
        when("runtime.runs", "1"),
        when("m0_axi_arvalid", "1"),
        when("m0_axi_awvalid", "1"),
        when("irq", "1"),
    ];
    assert!(times.is_sorted(), "{times:?}");
    assert!(
        changes.keys().any(|name| name.matches('.').count() > 2),
        "the inside of the core is there"
    );
}
