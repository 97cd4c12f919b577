//! GPUs, on a driver that stands in for NVIDIA's, and on NVIDIA's own without a GPU.

use super::{Answer, HELD_OUT, Outcome, Run, promised};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A run with a driver that stands in for NVIDIA's, found as that one is: by its name.
fn with_gpu(args: &[&str]) -> Answer<Run> {
    let folder = TempDir::new()?;
    std::os::unix::fs::symlink(fake_cuda::library(), folder.path().join("libcuda.so.1"))?;
    let place = folder.path().to_str().ok_or("a path that is not text")?;
    Run::with(args, &[("LD_LIBRARY_PATH", place)])
}

/// Checks a demo of all images on a GPU.
fn is_right(report: &Value, backend: &str, engine: &str) -> Outcome {
    let wanted = json!({
        "images": HELD_OUT,
        "jobs": 2 * HELD_OUT,
        "correct": promised("# held-out-correct:")?,
        "mismatches": 0,
        "bytes_copied": 0,
        "engine": engine,
    });
    for (field, value) in wanted.as_object().into_iter().flatten() {
        assert_eq!(&report[field], value, "{backend}: {field}");
    }
    assert_eq!(report["memory"]["backend"], backend);
    Ok(())
}

#[test]
fn gpu_reads_same_digits_from_cuda_memory() -> Outcome {
    let report =
        with_gpu(&["demo", "--memory", "cuda", "--json", "--trace", "run.json"])?.json()?;
    is_right(&report, "cuda-host", "gemm8 as a CUDA kernel")?;
    assert_eq!(report["sync_calls"], 0);
    assert_eq!(report["device_time_us_per_image"], Value::Null, "nothing virtual is claimed");
    let audit = report["audit"].as_array().ok_or("no audit")?;
    assert!(audit.iter().any(|row| row["what"] == "map for device"), "{audit:?}");
    Ok(())
}

/// Mesa's and pocl's drivers for the CPU, or this machine's GPU.
#[cfg(feature = "gpu")]
#[test]
fn the_same_digits_through_vulkan_and_opencl() -> Outcome {
    for (memory, engine) in
        [("vulkan", "gemm8 as a compute shader"), ("opencl", "gemm8 as an OpenCL kernel")]
    {
        let run = Run::of(&["demo", "--memory", memory, "--json"])?;
        let absent = ["cannot be loaded", "there is no such", "ordinal", "number"];
        if run.status() != Some(0) && absent.iter().any(|why| run.stderr().contains(why)) {
            contigo_testkit::skipped(
                "cli::gpu::the_same_digits_through_vulkan_and_opencl",
                &format!("{memory}: {}", run.stderr().trim()),
            );
            continue;
        }
        is_right(&run.json()?, memory, engine)?;
        let wrong = Run::of(&["demo", "--memory", &format!("{memory}:4294967295")])?
            .complains(&["is 4294967295: it must be"]);
        assert_ne!(wrong.status(), Some(0));
        Run::of(&["selftest", "--memory", memory])?
            .ends(1)
            .complains(&[&format!("contigo demo --memory {memory}")]);
    }
    Ok(())
}

#[test]
fn gpus_are_listed_and_what_is_missing_is_said() -> Outcome {
    let report = with_gpu(&["info", "--json"])?.json()?;
    let gpu = offer(&report, "cuda:0")?;
    assert!(gpu["state"] == "ready" && gpu["coherent"] == true, "{gpu}");
    let note = gpu["note"].as_str().unwrap_or_default();
    assert!(note.contains("compute capability 8.7"), "{note}");
    for (heap, part) in
        [("cuda:1", "the GPU's ordinal"), ("cuda:x", "a number from 0 to 4294967295")]
    {
        let run = with_gpu(&["demo", "--memory", heap])?.complains(&[part]);
        assert_ne!(run.status(), Some(0), "{heap}");
    }
    with_gpu(&["selftest", "--memory", "cuda"])?.refuses("contigo demo --memory cuda");
    Ok(())
}

/// The offer of this name in the inventory.
fn offer<'a>(report: &'a Value, name: &str) -> Answer<&'a Value> {
    let memory = report["memory"].as_array().ok_or("no memory")?;
    Ok(memory.iter().find(|offer| offer["name"] == name).ok_or("no such offer")?)
}

/// NVIDIA's own driver, where `tests/cuda/get` has put it into the cache.
#[test]
fn nvidia_driver_without_gpu_is_told_so() -> Outcome {
    use contigo_testkit::nvidia::{self, NoNode};
    let drivers = nvidia::drivers();
    let newest =
        drivers.iter().take(1).map(|driver| (driver, "cuInit: CUDA_ERROR_NO_DEVICE (100)"));
    let too_old = drivers
        .iter()
        .rfind(|driver| driver.too_old())
        .map(|driver| (driver, "CUDA 10.2 (10020) is the oldest driver"));
    if let Some(why) =
        nvidia::may_have_a_gpu().or_else(|| drivers.is_empty().then(|| nvidia::NOT_HERE.into()))
    {
        contigo_testkit::skipped("cli::gpu::nvidia_driver_without_gpu_is_told_so", &why);
        return Ok(());
    }
    let _node = NoNode::new();
    for (driver, part) in newest.chain(too_old) {
        let run = |args: &[&str]| -> Answer<Run> {
            let folder = TempDir::new()?;
            let mut command = driver.command(env!("CARGO_BIN_EXE_contigo"));
            let output = command.args(args).current_dir(folder.path()).output()?;
            Ok(Run { folder, output })
        };
        let report = run(&["info", "--json"])?.json()?;
        let gpu = offer(&report, "cuda")?;
        assert_eq!(gpu["state"], "blocked", "{driver:?}: {gpu}");
        assert!(gpu["note"].as_str().is_some_and(|note| note.contains(part)), "{driver:?}: {gpu}");
        run(&["demo", "--memory", "cuda"])?.refuses(part);
    }
    Ok(())
}
