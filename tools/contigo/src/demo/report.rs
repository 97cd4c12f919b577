//! The demo's final report, as text or JSON.

use super::trace::{Audit, Row};
use crate::failure::Failure;
use contigo::names::MemoryName;
use contigo_bringup::power::Energy;
use contigo_gemm8::demo::{Measured, Outcome, SCORES};
use serde::Serialize;
use std::fmt;
use std::path::Path;

/// The figures. Only the latencies differ between two runs with one seed on simulated memory.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    memory: Memory,
    engine: &'static str,
    seed: u64,
    images: usize,
    pub(super) correct: usize,
    accuracy_percent: f64,
    scores_checked: usize,
    mismatches: usize,
    jobs: u64,
    bytes_copied: u64,
    bytes_synced_for_device: u64,
    bytes_synced_for_cpu: u64,
    sync_calls: u64,
    latency_us: Latency,
    /// The virtual time, if the device is simulated.
    #[serde(skip_serializing_if = "Option::is_none")]
    device_time_us_per_image: Option<f64>,
    /// With `--power`: the energy of each rail.
    #[serde(skip_serializing_if = "Option::is_none")]
    energy: Option<Energies>,
    /// The path of the contact sheet, if one was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sheet: Option<String>,
    /// With `--trace`: the runtime's work, by site.
    #[serde(skip_serializing_if = "Option::is_none")]
    audit: Option<Vec<Row>>,
}

/// The memory, and how the engine reaches it.
#[derive(Debug, Serialize)]
struct Memory {
    name: String,
    backend: &'static str,
    base: String,
    len_bytes: usize,
    port: &'static str,
    addr_bits: u32,
    coherent: bool,
}

/// From "parsed into its slot" to "scores visible to the CPU", in microseconds.
#[derive(Debug, Serialize)]
struct Latency {
    p50: f64,
    p99: f64,
}

/// The parameters of the run, for [`Report::new`].
pub(crate) struct Asked<'a> {
    pub(crate) memory: &'a MemoryName,
    pub(crate) seed: u64,
    pub(crate) sheet: &'a Path,
}

impl Report {
    pub(crate) fn new(
        asked: &Asked<'_>,
        labels: &[u8],
        outcomes: &[Outcome],
        measured: &Measured,
        energy: Option<Energies>,
        audit: Option<Vec<Row>>,
    ) -> Self {
        let images = outcomes.len();
        let correct = labels
            .iter()
            .zip(outcomes)
            .filter(|(label, outcome)| **label == outcome.answer)
            .count();
        let mut latencies: Vec<_> = outcomes.iter().map(|outcome| outcome.latency_ns).collect();
        latencies.sort_unstable();
        let Measured { backend, base, len_bytes, port, stats, jobs, engine, device_ns } = *measured;
        Self {
            memory: Memory {
                name: asked.memory.to_string(),
                backend,
                base: format!("{:#x}", base.raw()),
                len_bytes,
                port: port.name,
                addr_bits: port.addr_bits,
                coherent: port.coherent,
            },
            engine,
            seed: asked.seed,
            images,
            correct,
            accuracy_percent: hundredths(100.0 * ratio(correct, images)),
            scores_checked: images * SCORES,
            mismatches: outcomes.iter().map(|outcome| outcome.wrong_scores).sum(),
            jobs: jobs.completed,
            bytes_copied: stats.bytes_copied,
            bytes_synced_for_device: stats.bytes_synced_for_device,
            bytes_synced_for_cpu: stats.bytes_synced_for_cpu,
            sync_calls: stats.syncs,
            latency_us: Latency {
                p50: us(percentile(&latencies, 50)),
                p99: us(percentile(&latencies, 99)),
            },
            device_time_us_per_image: device_ns
                .map(|device_ns| hundredths(us(device_ns) / ratio(images, 1))),
            energy,
            sheet: Some(asked.sheet.display().to_string()),
            audit,
        }
    }

    pub(crate) fn verdict(&self) -> Result<(), Failure> {
        match self.mismatches {
            0 => Ok(()),
            scores => Err(Failure::Mismatches { scores, of: self.scores_checked }),
        }
    }

    /// The sheet's title.
    pub(crate) fn title(&self) -> String {
        format!(
            "Handwritten digits on gemm8: {} of {} right ({:.2} %)",
            self.correct, self.images, self.accuracy_percent
        )
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Memory { backend, base, len_bytes, port, addr_bits, coherent, .. } = &self.memory;
        let snoops = if *coherent { "coherent" } else { "not coherent" };
        let mut row = |label: &str, value: fmt::Arguments<'_>| writeln!(f, "{label:>16}: {value}");
        row("memory", format_args!("{backend}, {len_bytes} bytes at {base}"))?;
        row("port", format_args!("{port}, {addr_bits} bits, {snoops}"))?;
        row("engine", format_args!("{}", self.engine))?;
        row("seed", format_args!("{}", self.seed))?;
        row("images", format_args!("{}, none of them seen in training", self.images))?;
        row(
            "accuracy",
            format_args!("{} of {} ({:.2} %)", self.correct, self.images, self.accuracy_percent),
        )?;
        row(
            "mismatches",
            format_args!(
                "{} in {} scores, bit for bit against the CPU",
                self.mismatches, self.scores_checked
            ),
        )?;
        row("jobs", format_args!("{}", self.jobs))?;
        row("bytes copied", format_args!("{}", self.bytes_copied))?;
        row(
            "bytes synced",
            format_args!(
                "{} for the device, {} for the CPU",
                self.bytes_synced_for_device, self.bytes_synced_for_cpu
            ),
        )?;
        row("sync calls", format_args!("{}", self.sync_calls))?;
        row(
            "latency p50",
            format_args!("{:.1} us from image parsed to scores visible", self.latency_us.p50),
        )?;
        row("latency p99", format_args!("{:.1} us", self.latency_us.p99))?;
        if let Some(device_time_us) = self.device_time_us_per_image {
            row("device time", format_args!("{device_time_us:.2} us per image, virtual"))?;
        }
        if let Some(energies) = &self.energy {
            energies.lines().try_for_each(|line| row("energy", format_args!("{line}")))?;
        }
        write!(f, "{:>16}: {}", "contact sheet", self.sheet.as_deref().unwrap_or("not written"))?;
        self.audit.iter().try_for_each(|rows| write!(f, "\n{}", Audit(rows)))
    }
}

/// The smallest value that `percent` of all values do not exceed (nearest rank). 0 without values.
fn percentile(sorted: &[u64], percent: usize) -> u64 {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0)
}

#[allow(clippy::cast_precision_loss, reason = "a run of 2^53 ns takes 104 days")]
fn us(ns: u64) -> f64 {
    hundredths(ns as f64 / 1_000.0)
}

#[allow(clippy::cast_precision_loss, reason = "there are 897 images")]
fn ratio(part: usize, whole: usize) -> f64 {
    part as f64 / whole.max(1) as f64
}

fn hundredths(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

/// The energy of an image, for each rail that the board measures.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(super) struct Energies(Vec<RailEntry>);

#[derive(Debug, Serialize)]
struct RailEntry {
    rail: String,
    /// The energy, including the board's idle power.
    #[serde(skip_serializing_if = "Option::is_none")]
    millijoules_per_image: Option<f64>,
    /// The same for one job of the engine.
    #[serde(skip_serializing_if = "Option::is_none")]
    millijoules_per_job: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    watts: Option<f64>,
    idle_watts: f64,
    readings: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl Energies {
    #[allow(
        clippy::cast_precision_loss,
        reason = "there are 897 images of two jobs each, and a rail has some watts"
    )]
    pub(super) fn new(energies: &[Energy], images: usize, jobs: u64) -> Self {
        let entry = |energy: &Energy| RailEntry {
            rail: energy.rail.clone(),
            millijoules_per_image: energy
                .joules()
                .map(|joules| joules * 1e3 / images.max(1) as f64),
            millijoules_per_job: energy.joules().map(|joules| joules * 1e3 / jobs.max(1) as f64),
            watts: energy.watts(),
            idle_watts: energy.idle_microwatts as f64 / 1e6,
            readings: energy.readings,
            error: energy.error.as_ref().map(ToString::to_string),
        };
        Self(energies.iter().map(entry).collect())
    }

    /// One line for each rail.
    pub(super) fn lines(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|entry| {
            let RailEntry { rail, watts, idle_watts, readings, error, .. } = entry;
            let energy = entry.millijoules_per_image.zip(entry.millijoules_per_job);
            match (energy, watts, error) {
                (Some((image, job)), Some(watts), _) => format!(
                    "{image:.3} mJ per image on {rail}, {job:.3} mJ per job: {watts:.3} W in \
                     {readings} readings, {idle_watts:.3} W before"
                ),
                (.., Some(error)) => format!("none on {rail}: {error}"),
                _ => format!("none on {rail}: the images were over before there were two readings"),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use contigo_bringup::machine::Machine;
    use contigo_bringup::power;
    use std::error::Error;
    use std::fs;
    use std::thread::sleep;
    use std::time::Duration;

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let values: Vec<_> = (1..=200).collect();
        assert_eq!((percentile(&values, 50), percentile(&values, 99)), (100, 198));
        assert_eq!((percentile(&[7], 50), percentile(&[7], 99), percentile(&[], 99)), (7, 7, 0));
    }

    #[test]
    fn a_rail_has_a_line() -> Result<(), Box<dyn Error>> {
        let folder = tempfile::tempdir()?;
        let monitor = folder.path().join("sys/class/hwmon/hwmon0");
        fs::create_dir_all(&monitor)?;
        for (file, text) in [
            ("name", "ina260"),
            ("label", "u14"),
            ("power1_input", "5000000"),
            ("power2_input", "?"),
        ] {
            fs::write(monitor.join(file), text)?;
        }
        let machine = Machine::copy(folder.path());
        let found = super::super::rails(&machine, &[]).map_err(|error| error.to_string())?;
        assert_eq!(found.len(), 2);
        let step = Duration::from_millis(1);
        let ((), measured) =
            power::beside(&power::rails(&machine), step, || sleep(Duration::from_millis(20)));
        let energies = Energies::new(&measured, 10, 20);
        let json = serde_json::to_value(&energies)?;
        let number = |name: &str| {
            json.pointer(&format!("/0/{name}"))
                .and_then(serde_json::Value::as_f64)
                .ok_or_else(|| json.to_string())
        };
        let (image, job) = (number("millijoules_per_image")?, number("millijoules_per_job")?);
        assert!(job > 0.0 && (image - 2.0 * job).abs() < 1e-9, "{json}");
        let lines: Vec<_> = energies.lines().collect();
        let [right, wrong] = lines.as_slice() else { return Err(format!("{lines:?}").into()) };
        assert!(
            right.contains(" mJ per image on u14, ")
                && right.contains(" mJ per job: 5.000 W in ")
                && right.ends_with("5.000 W before"),
            "{right}"
        );
        assert!(wrong.starts_with("none on u14: ") && wrong.ends_with("no number"), "{wrong}");
        let error =
            super::super::rails(&Machine::copy("/nowhere"), &[]).err().ok_or("rails of nothing")?;
        assert!(error.to_string().starts_with("--power: no rail is measured here"), "{error}");
        Ok(())
    }
}
