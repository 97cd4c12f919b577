use contigo::design::kernel;

pub fn run(bytes: &[u8]) {
    super::map(kernel::json::map(bytes));
}
