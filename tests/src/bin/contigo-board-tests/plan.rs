//! Which rows there are on this machine.

use crate::{
    checks::{Check, KEPT, LOCKED_DOWN, Subject, TAKEN, TESTS},
    child, gemm8, jobs,
    machine::{self, Engine, Memory},
    options::Options,
    report::{energy, latency},
    row::{Name, Row, Status},
    setup::{Place, Reach},
    vfio,
};
use contigo::Port;
use contigo_boards::DmaKind;

/// For one row, in seconds: 10,000 copies by the slowest of the fast engines take half a minute in
/// an emulator on a busy machine.
const ROW_LIMIT_S: u32 = 300;

/// The rows after which a port is root's alone, without udev, in the order in which they run: last
/// of all.
const LAST: [&str; 6] = ["guard-confined", KEPT, TAKEN, UNBOUND, UNLOADED, LOCKED_DOWN];
const UNBOUND: &str = "port-unbound";
const UNLOADED: &str = "module-unloaded";

/// One row, before it is run.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    name: Name,
    user: Option<u32>,
    what: What,
}

#[derive(Clone, Debug)]
enum What {
    Jobs {
        place: Place,
        interrupt: bool,
    },
    Check(Check),
    /// For a report: how long the shortest job takes.
    Latency {
        place: Place,
        interrupt: bool,
    },
    /// For a report: the energy of a job.
    Energy(Place),
    /// It is not possible here, and why.
    Nothing(String),
}

impl Planned {
    /// For `--list`.
    pub(crate) fn title(&self) -> String {
        let user = self.user.map_or(String::new(), |user| format!(" (user {user})"));
        match &self.what {
            What::Nothing(why) => format!("{}{user}: {why}", self.name.title()),
            What::Jobs { .. } | What::Check(_) | What::Latency { .. } | What::Energy(_) => {
                format!("{}{user}", self.name.title())
            }
        }
    }

    /// Runs it in a process of its own.
    pub(crate) fn run(&self, options: &Options) -> Row {
        let Self { name, user, .. } = self;
        match &self.what {
            What::Nothing(why) => {
                Row { user: user.unwrap_or(0), ..Row::new(name, Status::Skipped, why) }
            }
            What::Jobs { place, interrupt } => child::row(name, *user, ROW_LIMIT_S, |steady| {
                jobs::row(name, place, *interrupt, options.seed, options.jobs, steady)
            }),
            What::Check(check) => child::row(name, *user, ROW_LIMIT_S, |_| check.row(name)),
            What::Latency { place, interrupt } => child::row(name, *user, ROW_LIMIT_S, |_| {
                latency::row(name, place, *interrupt, options.jobs)
            }),
            What::Energy(place) => {
                child::row(name, *user, ROW_LIMIT_S, |_| energy::row(name, place))
            }
        }
    }

    fn check(name: &str, memory: &str, engine: &str, what: What) -> Self {
        Self { name: Name::check(name, memory, engine), user: None, what }
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
    let of = |engine: &Engine| {
        engine
            .memories()
            .into_iter()
            .filter_map(|memory| place(options, engine, &memory).ok())
            .collect::<Vec<_>>()
    };
    let copies = engines.iter().filter(|engine| {
        !matches!(engine, Engine::Litepcie(_) | Engine::Gemm8(_) | Engine::Gated(_))
    });
    let mut places: Vec<_> = copies.flat_map(of).collect();
    places.retain(|place| {
        options.memory.is_none_or(|memory| place.memory.label() == Memory::of(memory).label())
    });
    (places, simulated)
}

/// The guard of an engine, with the first heap.
pub(crate) fn subject(engine: &Engine) -> Option<Subject> {
    Some(Subject {
        guard: engine.guard()?,
        heap: machine::heaps().into_iter().next()?,
        kind: engine.kind(),
    })
}

/// The same with a reach that leaves out what is carved there.
pub(crate) const fn out_of_reach(place: Place) -> Place {
    let reach = match place.engine {
        Engine::Edu(_) => Reach::Narrow,
        _ => Reach::DriverOnly,
    };
    Place { reach, ..place }
}

/// All rows that the filter leaves, in the order in which they run.
pub(crate) fn rows(options: &Options) -> Vec<Planned> {
    let (engines, _) = engines(options);
    let mut rows = Vec::new();
    for engine in &engines {
        // These have tests of their own: `vfio/litepcie.rs`, `vfio/gemm8.rs`.
        for memory in engine
            .memories()
            .iter()
            .filter(|_| !matches!(engine, Engine::Litepcie(_) | Engine::Gemm8(_)))
        {
            rows.extend(jobs_rows(options, engine, memory));
        }
        rows.extend(engine_checks(options, engine));
        if options.report.is_some() {
            rows.extend(figures(options, engine));
        }
    }
    if engines.iter().any(|engine| matches!(engine, Engine::Soc { .. } | Engine::Edu(_))) {
        rows.extend(Memory::kinds().iter().filter_map(memory_check));
        // In an emulator: the page that moves is lost to the machine until it is started anew.
        if options.lab
            && Memory::kinds()
                .iter()
                .any(|memory| memory.is("hugetlb") && memory.absent().is_none())
        {
            rows.push(Planned::check(
                "pinned-page-stays",
                "hugetlb",
                "",
                What::Check(Check::Pinned),
            ));
        }
    }
    if let Some(guard) =
        engines.iter().filter(|engine| !matches!(engine, Engine::Gated(_))).find_map(Engine::guard)
        && let Some(heap) = machine::heaps().into_iter().next()
    {
        rows.push(Planned::check(UNLOADED, "", "", What::Check(Check::Unloaded { guard, heap })));
    }
    let compat = machine::is_compat();
    if compat {
        rows.retain(Planned::is_of_the_module);
    }
    if let Some(user) = options.user {
        let theirs: Vec<_> = rows.iter().filter_map(|row| row.for_user(user)).collect();
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

impl Planned {
    /// A row that a 32-bit program on a 64-bit kernel runs: the module's calls, which have one
    /// layout for both.
    fn is_of_the_module(&self) -> bool {
        match &self.what {
            What::Jobs { place, .. } => place.memory.is_imported(),
            What::Check(check) => matches!(check, Check::Fuzzed(_)) || check.is_for_user(),
            What::Latency { .. } | What::Energy(_) | What::Nothing(_) => false,
        }
    }

    /// The same row for an ordinary user, where it makes sense for one: memory that needs no
    /// physical address.
    fn for_user(&self, user: u32) -> Option<Self> {
        let theirs = match &self.what {
            What::Jobs { place, .. } => {
                place.memory.device().is_some_and(|device| device.kind() != "sim")
                    || place.memory.is("u-dma-buf")
            }
            What::Check(check) => {
                matches!(
                    check,
                    Check::Vfio(..) | Check::Litepcie(..) | Check::Gemm8(..) | Check::Fuzzed(_)
                ) || matches!(check, Check::Gated(_, _, device) if device.kind() == "guard")
                    || check.is_for_user()
            }
            What::Latency { .. } | What::Energy(_) | What::Nothing(_) => false,
        };
        theirs.then(|| Self { user: Some(user), ..self.clone() })
    }
}

fn jobs_rows(options: &Options, engine: &Engine, memory: &Memory) -> Vec<Planned> {
    let place = place(options, engine, memory);
    let row = |(mode, interrupt): (&'static str, bool)| {
        let what = match &place {
            Ok(place) => What::Jobs { place: *place, interrupt },
            Err(why) => What::Nothing(why.clone()),
        };
        Planned { name: Name::jobs(&memory.label(), &engine.label(), mode), user: None, what }
    };
    [("polled", false), ("interrupt", true)].map(row).into()
}

/// For a report: the figures of an engine, in the first memory that it can be given here.
fn figures(options: &Options, engine: &Engine) -> Vec<Planned> {
    // These copy nothing from memory to memory.
    if matches!(engine, Engine::Litepcie(_) | Engine::Gemm8(_) | Engine::Gated(_)) {
        return Vec::new();
    }
    let Some(place) =
        engine.memories().into_iter().find_map(|memory| place(options, engine, &memory).ok())
    else {
        return Vec::new();
    };
    let row = |kind, mode, what| Planned {
        name: Name::figures(kind, &place.memory.label(), &engine.label(), mode),
        user: None,
        what,
    };
    let mut rows: Vec<_> = [("polled", false), ("interrupt", true)]
        .map(|(mode, interrupt)| row("latency", mode, What::Latency { place, interrupt }))
        .into();
    if energy::is_measured() {
        rows.push(row("energy", "polled", What::Energy(place)));
    }
    rows
}

/// The checks of an engine, in the first memory that it can be given here.
fn engine_checks(options: &Options, engine: &Engine) -> Vec<Planned> {
    let label = engine.label();
    if let Engine::Gated(device) = engine {
        let tests = if device.kind() == "guard" { gemm8::GUARD } else { gemm8::UIO };
        let check = |(number, (name, _)): (usize, &gemm8::Test)| {
            Planned::check(name, "", &label, What::Check(Check::Gated(tests, number, *device)))
        };
        return tests.iter().enumerate().map(check).collect();
    }
    let (tests, make): (_, fn(usize, String) -> Check) = match engine {
        Engine::EduVfio(_) => (vfio::TESTS, Check::Vfio),
        Engine::Litepcie(_) => (vfio::litepcie::TESTS, Check::Litepcie),
        Engine::Gemm8(_) => (vfio::gemm8::TESTS, Check::Gemm8),
        _ => (&[], Check::Vfio),
    };
    if let (Some(device), [_, ..]) = (engine.device(), tests) {
        let tests = tests.iter().enumerate();
        return tests
            .map(|(number, (name, _))| {
                Planned::check(
                    &format!("vfio-{name}"),
                    "vfio",
                    &label,
                    What::Check(make(number, device.argument().to_owned())),
                )
            })
            .collect();
    }
    let found =
        engine.memories().into_iter().find_map(|memory| place(options, engine, &memory).ok());
    let memory = found.as_ref().map_or(String::new(), |place| place.memory.label());
    let check = |name: &str, make: &dyn Fn(Place) -> Check| {
        let what = match &found {
            Some(place) => What::Check(make(*place)),
            None => What::Nothing("there is no memory that this engine could be given".into()),
        };
        Planned::check(name, &memory, &label, what)
    };
    let mut rows = Vec::new();
    let reach = match engine {
        Engine::Edu(_) => ("28-bit-mask-refused", Reach::Narrow),
        _ => ("unreachable-refused", Reach::DriverOnly),
    };
    rows.push(check(reach.0, &|place| Check::Unreachable(Place { reach: reach.1, ..place })));
    rows.push(check("timeout-stops", &Check::Timeout));
    match engine.kind() {
        Some(DmaKind::Pl330) => {
            rows.push(check("fault-decoded", &Check::Pl330Fault));
            rows.push(check("endless-program-killed", &Check::Pl330Killed));
        }
        Some(DmaKind::Zdma) => {
            let why = "only an IOMMU makes a bus address that faults and does no harm; QEMU's ZDMA ignores what the bus answers";
            rows.push(Planned::check("fault-decoded", &memory, &label, What::Nothing(why.into())));
        }
        None => {}
    }
    if let Some(guard) = engine.guard()
        && !matches!(engine, Engine::Soc { linked: true, .. })
    {
        rows.extend(guard_checks(options, engine, &guard));
    }
    if let Engine::Soc { found: uio, linked: false, .. } = engine
        && engine.guard().is_none()
    {
        rows.push(Planned::check(
            "uio-in-use-refused",
            "",
            &label,
            What::Check(Check::UioInUse(uio.device)),
        ));
    }
    // Where nothing holds the memory, a kill is seen to do harm: or the check of a guard proves
    // nothing.
    if let (Engine::Edu(_), None, Some(memory)) = (engine, engine.guard(), Memory::named("hugetlb"))
    {
        let what = place(options, engine, &memory)
            .map_or_else(What::Nothing, |place| What::Check(Check::Killed(place)));
        rows.push(Planned::check("killed-in-flight-is-caught", &memory.label(), &label, what));
    }
    // Where only an emulator's port takes a memory, the real one must refuse it.
    for memory in engine.memories() {
        if memory.absent().is_none() && unmaintained(engine, &memory) {
            let place = Place {
                memory,
                engine: *engine,
                port: engine.port(),
                reach: Reach::All,
                armed: true,
            };
            rows.push(Planned::check(
                "real-port-refused",
                &memory.label(),
                &label,
                What::Check(Check::RealPort(place)),
            ));
        }
    }
    rows
}

/// The checks of a guard of the module contigo.
fn guard_checks(options: &Options, engine: &Engine, guard: &str) -> Vec<Planned> {
    let label = engine.label();
    let mut rows = Vec::new();
    let check =
        |name: &str, memory: &str, check| Planned::check(name, memory, &label, What::Check(check));
    for heap in machine::heaps() {
        let Some(memory) = Memory::named(&format!("dma-heap:{heap}@guard:{guard}")) else {
            continue;
        };
        let place = |memory| place(options, engine, &memory);
        let label = memory.label();
        rows.extend(
            memory.name().map(|name| check("exhausted-and-back", &label, Check::Exhausted(*name))),
        );
        if matches!(engine, Engine::Edu(_)) {
            let what =
                place(memory).map_or_else(What::Nothing, |place| What::Check(Check::Killed(place)));
            rows.push(Planned::check("killed-in-flight", &label, &engine.label(), what));
        }
        if engine.kind() == Some(DmaKind::Pl330) {
            let what = place(memory)
                .map_or_else(What::Nothing, |place| What::Check(Check::Stopped(place)));
            rows.push(Planned::check("killed-program-stopped", &label, &engine.label(), what));
        }
        let subject = Subject { guard: guard.to_owned(), heap: heap.clone(), kind: engine.kind() };
        rows.push(check("port-fuzzed", &label, Check::Fuzzed(subject.clone())));
        let ours = TESTS.iter().enumerate().filter(|(_, test)| (test.is_for)(&subject));
        rows.extend(
            ours.map(|(number, test)| {
                check(test.name, &label, Check::Guard(number, subject.clone()))
            }),
        );
        rows.push(check(UNBOUND, &label, Check::Unbound { guard: guard.to_owned(), heap }));
    }
    rows
}

fn memory_check(memory: &Memory) -> Option<Planned> {
    let label = memory.label();
    let check =
        |name: &str, check: Check| Some(Planned::check(name, &label, "", What::Check(check)));
    let name = memory.name().filter(|_| memory.is("hugetlb") || memory.is("dma-heap"))?;
    match memory.absent() {
        None => check("exhausted-and-back", Check::Exhausted(*name)),
        Some(_) if memory.is("dma-heap") => {
            check("no-address-refused", Check::HeapRefused(name.argument().to_owned()))
        }
        Some(_) => None,
    }
}

fn hidden_check(memory: &Memory, user: u32) -> Option<Planned> {
    let name = memory.name().filter(|_| memory.is("hugetlb") || memory.is("dma-heap"))?;
    let row =
        Planned::check("address-hidden", &memory.label(), "", What::Check(Check::Hidden(*name)));
    memory.absent().is_none().then_some(Planned { user: Some(user), ..row })
}

/// An engine with a memory, or why not.
fn place(options: &Options, engine: &Engine, memory: &Memory) -> Result<Place, String> {
    if let Some(why) = memory.absent() {
        return Err(why);
    }
    let real = engine.port();
    let port = match (unmaintained(engine, memory), options.lab) {
        (false, _) => real,
        (true, true) => Port { name: "lab", coherent: true, ..real },
        (true, false) => return Err("the caches of this memory cannot be maintained on this processor; in an emulator: --lab".into()),
    };
    Ok(Place { memory: *memory, engine: *engine, port, reach: Reach::All, armed: true })
}

/// Can neither the kernel nor this program maintain this memory's caches for this engine? A
/// dma-heap's on armv7: a test there needs an emulator, which has no caches, and a coherent port.
fn unmaintained(engine: &Engine, memory: &Memory) -> bool {
    memory.is("dma-heap") && cfg!(target_arch = "arm") && !engine.port().coherent
}
