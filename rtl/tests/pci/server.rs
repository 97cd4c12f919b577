//! A server that must end, and its command line.

use super::machine::{FROM, PAGE, PATIENCE, READER, Server, program};
use contigo_testkit::litepcie as manual;
use nix::sys::memfd::{MFdFlags, memfd_create};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use tempfile::TempDir;
use vfio_bindings::bindings::vfio::{VFIO_PCI_BAR0_REGION_INDEX, VFIO_PCI_CONFIG_REGION_INDEX};
use vfio_user::Client;

/// A message of vfio-user, header and `body`, and its answer, which a server that ends does not
/// give.
fn message(stream: &mut UnixStream, command: u16, body: &[u8]) {
    let mut bytes = [&[0, 0], command.to_le_bytes().as_slice()].concat();
    bytes.extend(u32::try_from(16 + body.len()).unwrap().to_le_bytes());
    bytes.extend([0; 8]);
    bytes.extend(body);
    let mut header = [0; 16];
    if stream.write_all(&bytes).is_ok() && stream.read_exact(&mut header).is_ok() {
        let len = u32::from_le_bytes([header[4], header[5], header[6], header[7]]);
        let _ = stream.read_exact(&mut vec![0; len as usize - header.len()]);
    }
}

#[test]
fn memory_without_its_file_ends_the_server() {
    const DMA_MAP: u16 = 2;
    const REGION_WRITE: u16 = 10;
    let server = Server::start();
    let mut stream = server.connect(|path| UnixStream::connect(path));
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let words =
        |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
    // 32 bytes; may be read and written; offset, address, size.
    message(&mut stream, DMA_MAP, &words(&[32 | 3 << 32, 0, FROM, PAGE as u64]));
    let mut write = |region: u32, at: usize, value: &[u8]| {
        let place = words(&[at as u64, u64::from(region) | (value.len() as u64) << 32]);
        message(&mut stream, REGION_WRITE, &[&place, value].concat());
    };
    write(VFIO_PCI_CONFIG_REGION_INDEX, 4, &[6, 0]);
    for (at, value) in [
        (manual::VALUE, 4096_u32),
        (manual::VALUE + 4, FROM as u32),
        (manual::WE, (FROM >> 32) as u32),
        (0, 1),
    ] {
        write(VFIO_PCI_BAR0_REGION_INDEX, READER + at, &value.to_le_bytes());
    }
    let (status, said) = server.ended();
    assert!(
        status == Some(1) && said.contains("came without its file: give QEMU"),
        "{status:?} {said}"
    );
}

#[test]
fn a_file_that_is_too_short_ends_the_server() {
    let server = Server::start();
    let mut client = server.connect(Client::new);
    let ram = File::from(memfd_create(c"ram", MFdFlags::MFD_CLOEXEC).unwrap());
    ram.set_len(PAGE as u64).unwrap();
    let _ = client.dma_map(0, FROM, 2 * PAGE as u64, ram.as_raw_fd());
    let (status, said) = server.ended();
    assert!(
        status == Some(1) && said.contains("cannot be mapped: 0x2000 bytes"),
        "{status:?} {said}"
    );
}

#[test]
fn wrong_usage_or_socket_says_what_is_right() {
    let folder = TempDir::new().unwrap();
    let exists = folder.path().join("exists");
    File::create(&exists).unwrap();
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    let (long, nowhere) =
        (path(&folder.path().join("x".repeat(120))), path(&folder.path().join("no/socket")));
    let exists = path(&exists);
    let cases: &[(&[&str], i32, &str)] = &[
        (&[], 2, "--model NAME"),
        (&["--model", "litepcie"], 2, "--socket PATH"),
        (&["--model", "no-such"], 2, "there is no model no-such"),
        (&["--model", "gemm8:reset+no-such"], 2, "there is no mistake no-such: bus-master, reset"),
        (&["--socket"], 2, "needs a value"),
        (&["--speed"], 2, "--speed is no option"),
        (&["--model", "litepcie", "--socket", &exists], 1, "exists: delete it"),
        (&["--model", "litepcie", "--socket", &long], 1, "a socket's path has 107 at most"),
        (
            &["--model", "litepcie", "--socket", &nowhere],
            1,
            "the connection broke: Error binding to socket",
        ),
    ];
    for (words, status, expected) in cases {
        let output = program(words).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.code() == Some(*status) && said.contains(expected),
            "{words:?}: {said}"
        );
    }
    let help = program(&["--help"]).output().unwrap();
    assert!(
        help.status.success()
            && String::from_utf8_lossy(&help.stdout).contains("  litepcie     a card")
    );
}
