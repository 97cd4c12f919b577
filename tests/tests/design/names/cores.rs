//! `docs/cores.md`: the drivers by their names, as every language opens them.

use contigo::names::each_row;
use std::{env, fmt::Write as _, fs, path::Path};

const HEAD: &str = "# Cores

This page says which driver your core needs, its jobs, its settings, and what its ends mean.

| language | a driver, on a device that is open |
|---|---|
| Rust | its module in `contigo::drivers`, or by its name: `contigo::names::row(\"axi_dma\")` |
| C | `contigo_engine_open(&options, &engine)`, with the driver's name in the options |
| Python | `device.driver(\"axi_dma\", memory=region, length_bits=23)`, or `contigo.Overlay` |

The module of each driver in `contigo::drivers` documents its modes, alignment, lengths and traps,
and names the manual. Most settings are parameters of the block design that no register reports. A
design that you open by its `.hwh` sets them; otherwise each has the design tool's default.

A core takes one job at a time, a chain of HLS two, AXI DMAC four. A driver with memory of its own
keeps descriptors there, and takes as many jobs as fit: `Driver::depth` in Rust, `queue.depth` in
Python. A longer queue keeps the other jobs until the core has room.
[measured.md](measured.md#registers-and-syncs-of-a-job) has the registers and syncs of a job.

## The drivers

\"DT\" is the `compatible` of the device tree, \"IP\" the core's name in a block design. Those that
copy also run in the self-test, `contigo selftest --driver NAME`.

| driver | jobs | settings |
|---|---|---|
";

/// The part that no row says: the meaning of an end where a stream is behind the core, and what a
/// stop leaves.
const TAIL: &str = "
## Where a stream is behind the core

**When a sending job ends,** the device no longer reads its buffer, but the last bytes may still be
in the core: AXI DMA reports the end before the last beats are on the stream, and every core with a
FIFO may do so. A stop or a reset right after the end may lose them; stopping AXI DMA's receive
channel while it waits also resets its send channel. Only the other end of the stream can tell what
has arrived.

**A stop may come at any moment,** also in the middle of a received packet. Jobs that ended before
the stop are reported after it, and are whole packets. The other jobs come back without an end. If
the core's reset does not reach the source, the rest of the packet waits in the stream, and the next
job may begin with it:

| driver, mode | the first end after the next start | where it is reported |
|---|---|---|
| `axi_dma` receives, with descriptors or in registers | may be the rest of a packet | bit 0 of the completion's word 0; in Rust `maybe_torn` |
| `axi_dma`, both channels | the answer may begin with an older one | bit 0 of word 0 |
| `axi_mcdma` receives | may be the rest of a packet, where that was not dropped | bit 0 of word 1; in Rust `maybe_torn` |
| `axi_vdma` receives | a whole frame, where TUSER marks its beginning: the core waits for it | not needed |
| `msgdma` receives, with a prefetcher or without | may be the rest of a packet that took longer than `stop_us` | nowhere: discard the first packet |
| `axi_dmac` receives | may be the rest of a packet | nowhere: discard the first packet |
| `litepcie` receives | begins anywhere: the card discards what comes while it is stopped | nowhere: a stream of bytes has no packets |
| copies, and kernels of HLS | as any other | not needed |

Drivers with such a bit also set it after a reset by the other channel, and after a buffer that
filled before its packet ended. A program that opens a core after another program was killed gets no
bit, and its first packet may be torn too.
";

#[test]
fn the_page_of_cores_is_up_to_date() {
    let mut page = String::from(HEAD);
    each_row(|row| {
        let quoted = |names: &[&str]| {
            names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
        };
        write!(page, "| `{}` | {}.", row.name, capital(row.help)).unwrap();
        for (what, names) in [("DT", row.compatible), ("IP", row.ip)] {
            if !names.is_empty() {
                write!(page, " {what}: {}.", quoted(names)).unwrap();
            }
        }
        page += if row.copies { " Self-test." } else { "" };
        let settings = quoted(row.settings.unwrap_or_default());
        writeln!(page, " | {settings} |").unwrap();
    });
    page += TAIL;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/cores.md");
    if env::var_os("CONTIGO_WRITE_DOCS").is_some() {
        fs::write(&path, &page).unwrap();
    }
    assert!(
        fs::read_to_string(&path).is_ok_and(|old| old == page),
        "CONTIGO_WRITE_DOCS=1 cargo test -p contigo-tests --test design names"
    );
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
