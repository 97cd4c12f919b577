//! Which rows there are on this machine.

use crate::checks::{self, KEPT, LOCKED_DOWN, Subject, TAKEN, engine as of_engine, killed, memory};
use crate::child::{self, Steady};
use crate::machine::{self, Engine, Memory};
use crate::options::Options;
use crate::report::{energy, latency};
use crate::row::{Name, Row, Status};
use crate::setup::{self, Place, Reach};
use crate::verdict::{Seen, Verdict, Wrong};
use crate::{gemm8, jobs, vfio};
use contigo_boards::DmaKind;
use std::rc::Rc;
use std::time::Instant;

/// For one row, in seconds: 10,000 copies by the slowest of the fast engines take half a minute in
/// an emulator on a busy machine.
const ROW_LIMIT_S: u32 = 300;

/// The rows after which a port is root's alone, without udev, in the order in which they run: last
/// of all.
const LAST: [&str; 6] = ["contigo-confined", KEPT, TAKEN, UNBOUND, UNLOADED, LOCKED_DOWN];
const UNBOUND: &str = "port-unbound";
const UNLOADED: &str = "module-unloaded";

#[derive(Clone)]
pub(crate) struct Planned {
    name: Name,
    user: Option<u32>,
    what: What,
    /// It makes sense for an ordinary user, too: it needs no physical address.
    for_user: bool,
    /// It is about the module's calls, which have one layout for programs of 32 and of 64 bits.
    of_module: bool,
}

type Work = Rc<dyn Fn(&Name, &Options, Steady) -> Row>;

#[derive(Clone)]
enum What {
    Work(Work),
    Nothing(String),
}

impl Planned {
    fn new(name: Name, what: What) -> Self {
        Self { name, user: None, what, for_user: false, of_module: false }
    }

    fn check<S: Into<Seen>>(
        name: &str,
        memory: &str,
        engine: &str,
        check: impl Fn() -> Result<S, Wrong> + 'static,
    ) -> Self {
        let work = move |name: &Name, _: &Options, _| {
            let begun = Instant::now();
            let row = Row::of(name, check().map(Into::into));
            Row { seconds: begun.elapsed().as_secs_f64(), ..row }
        };
        Self::new(Name::check(name, memory, engine), What::Work(Rc::new(work)))
    }

    fn nothing(name: &str, memory: &str, engine: &str, why: impl Into<String>) -> Self {
        Self::new(Name::check(name, memory, engine), What::Nothing(why.into()))
    }

    /// A row of a check at a place that there may not be.
    fn at(
        name: &str,
        memory: &str,
        engine: &str,
        place: &Result<Place, String>,
        check: fn(&Place) -> Verdict,
    ) -> Self {
        match place.clone() {
            Ok(place) => Self::check(name, memory, engine, move || check(&place)),
            Err(why) => Self::nothing(name, memory, engine, why),
        }
    }

    fn also(self, for_user: bool, of_module: bool) -> Self {
        Self { for_user, of_module, ..self }
    }

    pub(crate) fn title(&self) -> String {
        let user = self.user.map_or(String::new(), |user| format!(" (user {user})"));
        match &self.what {
            What::Nothing(why) => format!("{}{user}: {why}", self.name.title()),
            What::Work(_) => format!("{}{user}", self.name.title()),
        }
    }

    pub(crate) fn run(&self, options: &Options) -> Row {
        let Self { name, user, .. } = self;
        match &self.what {
            What::Nothing(why) => {
                Row { user: user.unwrap_or(0), ..Row::new(name, Status::Skipped, why) }
            }
            What::Work(work) => {
                child::row(name, *user, ROW_LIMIT_S, |steady| work(name, options, steady))
            }
        }
    }
}

/// The engines that the options choose; and are they the simulated board's, because there is none?
fn engines(options: &Options) -> (Vec<Engine>, bool) {
    let mut engines = Engine::all();
    let simulated = engines.is_empty();
    let sim = options.sim || options.device.is_some_and(|device| device.kind() == "sim");
    if sim || simulated {
        engines.extend([Engine::Sim(DmaKind::Pl330), Engine::Sim(DmaKind::Zdma)]);
    }
    engines.retain(|engine| options.device.is_none_or(|device| engine.device() == Some(device)));
    (engines, simulated)
}

/// Every engine of copies with every memory that it can be given here, for a soak.
pub(crate) fn places(options: &Options) -> (Vec<Place>, bool) {
    let (engines, simulated) = engines(options);
    let copies = engines.iter().filter(|engine| engine.copies());
    let mut places: Vec<_> = copies.flat_map(|engine| all_places(options, engine)).collect();
    places.retain(|place| {
        options.memory.is_none_or(|memory| place.memory.label() == Memory::of(memory).label())
    });
    (places, simulated)
}

/// An engine with each memory that it can be given here.
fn all_places(options: &Options, engine: &Engine) -> impl Iterator<Item = Place> {
    let memories = engine.memories().into_iter();
    memories.filter_map(move |memory| Place::of(engine, &memory, options.lab).ok())
}

/// The contigo device of an engine, with the first heap.
pub(crate) fn subject(engine: &Engine) -> Option<Subject> {
    let heap = machine::heaps().into_iter().next()?;
    Some(Subject { dev_node: engine.dev_node()?, heap, kind: engine.kind() })
}

/// All rows that the filter leaves, in the order in which they run.
pub(crate) fn rows(options: &Options) -> Vec<Planned> {
    let (engines, _) = engines(options);
    let mut rows = Vec::new();
    for engine in &engines {
        // LitePCIe and gemm8 have tests of their own.
        if !matches!(engine, Engine::Litepcie(_) | Engine::Gemm8(_)) {
            for memory in engine.memories() {
                rows.extend(jobs_rows(options, engine, &memory));
            }
        }
        rows.extend(engine_checks(options, engine));
        if options.report.is_some() {
            rows.extend(figures(options, engine));
        }
    }
    if engines.iter().any(|engine| matches!(engine, Engine::Soc { .. } | Engine::Edu(_))) {
        let kinds = Memory::kinds();
        rows.extend(kinds.iter().filter_map(memory_check));
        // In an emulator: the page that moves is lost to the machine until it is started anew.
        let has_huge_pages =
            kinds.iter().any(|memory| memory.is("hugetlb") && memory.absent().is_none());
        if options.lab && has_huge_pages {
            rows.push(Planned::check("pinned-page-stays", "hugetlb", "", memory::pinned));
        }
    }
    let mut contigo_device = engines.iter().filter(|engine| !matches!(engine, Engine::Gated(_)));
    if let Some(subject) = contigo_device.find_map(subject) {
        let unloaded = move || checks::module::unloaded(&subject);
        rows.push(Planned::check(UNLOADED, "", "", unloaded));
    }
    let compat = machine::is_compat();
    rows.retain(|row| !compat || row.of_module);
    if let Some(user) = options.user {
        let theirs = rows.iter().filter(|row| row.for_user);
        let theirs: Vec<_> =
            theirs.map(|row| Planned { user: Some(user), ..row.clone() }).collect();
        rows.extend(theirs);
        if !compat {
            rows.extend(Memory::kinds().iter().filter_map(|memory| hidden_check(memory, user)));
        }
    }
    let memory = options.memory.map(|name| Memory::of(name).label());
    rows.retain(|row| memory.as_ref().is_none_or(|memory| row.name.memory == *memory));
    rows.retain(|row| options.device.is_none() || !row.name.engine.is_empty());
    rows.retain(|row| row.name.name.contains(&options.filter));
    rows.retain(|row| (row.name.name == LOCKED_DOWN) == options.locked_down);
    rows.sort_by_key(|row| LAST.iter().position(|name| row.name.name == *name));
    rows
}

/// How the end of a job is found, and whether by an interrupt.
const MODES: [(&str, bool); 2] = [("polled", false), ("interrupt", true)];

fn jobs_rows(options: &Options, engine: &Engine, memory: &Memory) -> [Planned; 2] {
    let place = Place::of(engine, memory, options.lab);
    MODES.map(|(mode, interrupt)| {
        let name = Name::jobs(&memory.label(), &engine.label(), mode);
        let place = match place.clone() {
            Ok(place) => place,
            Err(why) => return Planned::new(name, What::Nothing(why)),
        };
        let work = move |name: &Name, options: &Options, steady| {
            jobs::row(name, &place, interrupt, options.seed, options.jobs, steady)
        };
        let for_user =
            memory.device().is_some_and(|device| device.kind() != "sim") || memory.is("u-dma-buf");
        Planned::new(name, What::Work(Rc::new(work))).also(for_user, memory.is_imported())
    })
}

/// For a report: the figures of an engine, in the first memory that it can be given here.
fn figures(options: &Options, engine: &Engine) -> Vec<Planned> {
    let Some(place) = all_places(options, engine).next().filter(|_| engine.copies()) else {
        return Vec::new();
    };
    let name = |kind, mode| Name::figures(kind, &place.memory.label(), &engine.label(), mode);
    let mut rows: Vec<_> = MODES
        .map(|(mode, interrupt)| {
            let work = move |name: &Name, options: &Options, _| {
                latency::row(name, &place, interrupt, options.jobs)
            };
            Planned::new(name("latency", mode), What::Work(Rc::new(work)))
        })
        .into();
    if energy::is_measured() {
        let work = move |name: &Name, _: &Options, _| energy::row(name, &place);
        rows.push(Planned::new(name("energy", "polled"), What::Work(Rc::new(work))));
    }
    rows
}

/// The checks of an engine, in the first memory that it can be given here.
fn engine_checks(options: &Options, engine: &Engine) -> Vec<Planned> {
    let label = engine.label();
    match engine {
        Engine::Gated(device) => {
            let is_contigo = device.kind() == "contigo";
            let tests = if is_contigo { gemm8::CONTIGO } else { gemm8::UIO };
            let (device, tests) = (*device, tests.iter());
            let rows = tests.map(|&(name, test)| {
                Planned::check(name, "", &label, move || test(&device)).also(is_contigo, false)
            });
            return rows.collect();
        }
        Engine::EduVfio(device) => return vfio_checks(&label, device.argument(), vfio::TESTS),
        Engine::Litepcie(device) => {
            return vfio_checks(&label, device.argument(), vfio::litepcie::TESTS);
        }
        Engine::Gemm8(device) => return vfio_checks(&label, device.argument(), gemm8::VFIO),
        Engine::Sim(_) | Engine::Soc { .. } | Engine::Edu(_) => {}
    }
    let found = all_places(options, engine)
        .next()
        .ok_or_else(|| "there is no memory that this engine could be given".to_owned());
    let memory = found.as_ref().map_or(String::new(), |place| place.memory.label());
    let check = |name: &str, check: fn(&Place) -> Verdict| {
        Planned::at(name, &memory, &label, &found, check)
    };
    let reach =
        if let Engine::Edu(_) = engine { "28-bit-mask-refused" } else { "unreachable-refused" };
    let mut rows = vec![
        check(reach, |place| of_engine::unreachable(&place.out_of_reach())),
        check("timeout-stops", of_engine::timeout),
    ];
    match engine.kind() {
        Some(DmaKind::Pl330) => {
            rows.push(check("fault-decoded", of_engine::pl330_fault));
            rows.push(check("endless-program-killed", of_engine::pl330_killed));
        }
        Some(DmaKind::Zdma) => {
            let why = "only an IOMMU makes a bus address that faults and does no harm; \
                       QEMU's ZDMA ignores what the bus answers";
            rows.push(Planned::nothing("fault-decoded", &memory, &label, why));
        }
        None => {}
    }
    match (engine, engine.dev_node()) {
        (Engine::Soc { linked: true, .. }, _) => {}
        (_, Some(dev_node)) => rows.extend(contigo_checks(options, engine, &dev_node)),
        (Engine::Soc { found, .. }, None) => {
            let device = found.device;
            let in_use = move || of_engine::uio_in_use(&device);
            rows.push(Planned::check("uio-in-use-refused", "", &label, in_use));
        }
        // Where nothing holds the memory, a kill is seen to do harm: or the check of a contigo
        // device proves nothing.
        (Engine::Edu(_), None) => rows.extend(Memory::named("hugetlb").map(|memory| {
            let place = Place::of(engine, &memory, options.lab);
            let name = "killed-in-flight-is-caught";
            Planned::at(name, &memory.label(), &label, &place, killed::killed)
        })),
        _ => {}
    }
    // Where only an emulator's port takes a memory, the real one must refuse it.
    for memory in engine.memories() {
        if memory.absent().is_none() && setup::unmaintained(engine, &memory) {
            let (engine, port) = (*engine, engine.port());
            let place = Ok(Place { memory, engine, port, reach: Reach::All, armed: true });
            let name = "real-port-refused";
            rows.push(Planned::at(name, &memory.label(), &label, &place, of_engine::real_port));
        }
    }
    rows
}

/// The tests of a PCI function behind an IOMMU.
fn vfio_checks(label: &str, address: &str, tests: &'static [vfio::Test]) -> Vec<Planned> {
    let row = |&(name, test): &vfio::Test| {
        let address = address.to_owned();
        let test = move || test(&address);
        Planned::check(&format!("vfio-{name}"), "vfio", label, test).also(true, false)
    };
    tests.iter().map(row).collect()
}

fn contigo_checks(options: &Options, engine: &Engine, dev_node: &str) -> Vec<Planned> {
    let label = engine.label();
    let mut rows = Vec::new();
    for heap in machine::heaps() {
        let Some(memory) = Memory::named(&format!("dma-heap:{heap}@contigo:{dev_node}")) else {
            continue;
        };
        let of_memory = memory.label();
        let subject = Subject { dev_node: dev_node.to_owned(), heap, kind: engine.kind() };
        let check = |name: &str, check: fn(&Subject) -> Verdict| {
            let subject = subject.clone();
            Planned::check(name, &of_memory, &label, move || check(&subject))
        };
        if let Some(&name) = memory.name() {
            let exhausted = move || memory::all_of(&name);
            rows.push(Planned::check("exhausted-and-back", &of_memory, &label, exhausted));
        }
        let place = Place::of(engine, &memory, options.lab);
        if matches!(engine, Engine::Edu(_)) {
            let name = "killed-in-flight";
            rows.push(Planned::at(name, &of_memory, &label, &place, killed::killed));
        }
        if engine.kind() == Some(DmaKind::Pl330) {
            let name = "killed-program-stopped";
            rows.push(Planned::at(name, &of_memory, &label, &place, killed::stopped));
        }
        rows.push(check("port-fuzzed", checks::fuzzed).also(true, true));
        for test in checks::TESTS.iter().filter(|test| (test.is_for)(&subject)) {
            rows.push(check(test.name, test.run).also(test.for_user, test.for_user));
        }
        rows.push(check(UNBOUND, checks::module::unbound));
    }
    rows
}

fn memory_check(memory: &Memory) -> Option<Planned> {
    let name = *memory.name().filter(|_| memory.is("hugetlb") || memory.is("dma-heap"))?;
    let label = memory.label();
    match memory.absent() {
        None => {
            let exhausted = move || memory::all_of(&name);
            Some(Planned::check("exhausted-and-back", &label, "", exhausted))
        }
        Some(_) if memory.is("dma-heap") => {
            let refused = move || memory::heap_refused(name.argument());
            Some(Planned::check("no-address-refused", &label, "", refused))
        }
        Some(_) => None,
    }
}

fn hidden_check(memory: &Memory, user: u32) -> Option<Planned> {
    let name = *memory.name().filter(|_| memory.is("hugetlb") || memory.is("dma-heap"))?;
    let row = Planned::check("address-hidden", &memory.label(), "", move || memory::hidden(&name));
    memory.absent().is_none().then_some(Planned { user: Some(user), ..row })
}
