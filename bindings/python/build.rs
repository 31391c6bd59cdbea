//! Links the extension module against symbols that the Python interpreter provides.

fn main() {
    pyo3_build_config::add_extension_module_link_args();
}
