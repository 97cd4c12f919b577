//! The energy of an image, for each rail that the board measures.

use contigo_bringup::power::Energy;
use serde::Serialize;

/// All rails.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(super) struct Energies(Vec<Entry>);

/// One rail's.
#[derive(Debug, Serialize)]
struct Entry {
    rail: String,
    /// With the board's idle power in it.
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
        let entry = |energy: &Energy| Entry {
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

    /// A line for each.
    pub(super) fn lines(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|Entry { rail, millijoules_per_image, millijoules_per_job, watts, idle_watts, readings, error }| {
            match (millijoules_per_image.zip(*millijoules_per_job), watts, error) {
                (Some((image, job)), Some(watts), _) => {
                    let energy = format!("{image:.3} mJ per image on {rail}, {job:.3} mJ per job");
                    format!("{energy}: {watts:.3} W in {readings} readings, {idle_watts:.3} W before")
                }
                (.., Some(error)) => format!("none on {rail}: {error}"),
                _ => format!("none on {rail}: the images were over before there were two readings"),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Energies;
    use contigo_bringup::{machine::Machine, power};
    use std::{error::Error, fs, thread::sleep, time::Duration};

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
        assert_eq!(super::super::rails(&machine, &[])?.len(), 2);
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
