use rustls::pki_types::CertificateDer;
pub fn subject_name(_: &CertificateDer<'_>) -> Result<String, ()> { Err(()) }
