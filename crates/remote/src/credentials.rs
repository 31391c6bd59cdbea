//! Credentials for object stores, checked before the first request.
//!
//! Without credentials, `object_store` asks the metadata service of a cloud machine at
//! 169.254.169.254. Anywhere else that request times out, or an unknown host answers it. This crate
//! therefore allows it only if the environment declares that the service exists, with the variables
//! of the clouds' own tools; otherwise the user gets an error that names the missing credentials.

/// Describes the missing credentials for `s3://`, if any.
#[cfg(feature = "aws")]
pub(crate) fn missing_s3(builder: &object_store::aws::AmazonS3Builder) -> Option<&'static str> {
    use object_store::aws::AmazonS3ConfigKey as Key;
    let has = |key| builder.get_config_value(&key).is_some_and(|value| !value.is_empty());
    let is_true = |key| builder.get_config_value(&key).is_some_and(|value| parse_bool(&value));
    let is_on_ec2 = std::env::var("AWS_EC2_METADATA_DISABLED")
        .is_ok_and(|disabled| disabled.eq_ignore_ascii_case("false"));
    let found = is_true(Key::SkipSignature)
        || has(Key::AccessKeyId)
        || has(Key::SecretAccessKey)
        || (has(Key::WebIdentityTokenFile) && has(Key::RoleArn))
        || has(Key::ContainerCredentialsRelativeUri)
        || (has(Key::ContainerCredentialsFullUri) && has(Key::ContainerAuthorizationTokenFile))
        || is_on_ec2;
    (!found).then_some(
        "no credentials for s3:// are set: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY \
         (~/.aws/credentials is not read), or AWS_SKIP_SIGNATURE=true for a public bucket; in a \
         container or with a web identity, AWS_CONTAINER_CREDENTIALS_RELATIVE_URI, or \
         AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN; to use the role of this EC2 machine, \
                  AWS_EC2_METADATA_DISABLED=false",
    )
}

/// Describes the missing credentials for `gs://`, if any.
#[cfg(feature = "gcp")]
pub(crate) fn missing_gs(
    builder: &object_store::gcp::GoogleCloudStorageBuilder,
) -> Option<&'static str> {
    use object_store::gcp::GoogleConfigKey as Key;
    let has = |key| builder.get_config_value(&key).is_some_and(|value| !value.is_empty());
    let is_true = |key| builder.get_config_value(&key).is_some_and(|value| parse_bool(&value));
    // Path where `gcloud auth application-default login` writes them and `object_store` looks.
    let (home, file) = if cfg!(windows) {
        ("APPDATA", "gcloud/application_default_credentials.json")
    } else {
        ("HOME", ".config/gcloud/application_default_credentials.json")
    };
    let logged_in =
        std::env::var_os(home).is_some_and(|home| std::path::Path::new(&home).join(file).exists());
    let found = is_true(Key::SkipSignature)
        || has(Key::ServiceAccount)
        || has(Key::ServiceAccountKey)
        || has(Key::ApplicationCredentials)
        || has(Key::BearerToken)
        || logged_in
        || ["GCE_METADATA_HOST", "GCE_METADATA_ROOT", "GCE_METADATA_IP"]
            .into_iter()
            .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()));
    (!found).then_some(
        "no credentials for gs:// are set: set GOOGLE_APPLICATION_CREDENTIALS or GOOGLE_SERVICE_ACCOUNT \
                 to a credentials file, or log in with `gcloud auth application-default login`, or set \
                 GOOGLE_SKIP_SIGNATURE=true for a public bucket; to use the service account of this Compute \
                 Engine machine, GCE_METADATA_HOST=metadata.google.internal",
    )
}

/// Describes the missing credentials for `az://`, if any.
#[cfg(feature = "azure")]
pub(crate) fn missing_az(
    builder: &object_store::azure::MicrosoftAzureBuilder,
) -> Option<&'static str> {
    use object_store::azure::AzureConfigKey as Key;
    let has = |key| builder.get_config_value(&key).is_some_and(|value| !value.is_empty());
    let is_true = |key| builder.get_config_value(&key).is_some_and(|value| parse_bool(&value));
    let found = is_true(Key::SkipSignature)
        || is_true(Key::UseEmulator)
        || is_true(Key::UseAzureCli)
        || builder.get_config_value(&Key::CredentialType).is_some_and(|kind| kind != "auto")
        || has(Key::Token)
        || has(Key::AccessKey)
        || has(Key::SasKey)
        || (has(Key::ClientId)
            && has(Key::AuthorityId)
            && (has(Key::ClientSecret) || has(Key::FederatedTokenFile)))
        || (has(Key::FabricTokenServiceUrl)
            && has(Key::FabricWorkloadHost)
            && has(Key::FabricSessionToken)
            && has(Key::FabricClusterIdentifier))
        || has(Key::MsiEndpoint);
    (!found).then_some(
        "no credentials for az:// are set: set AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_TOKEN, or \
                 AZURE_USE_AZURE_CLI=true to use those of `az`, or AZURE_SKIP_SIGNATURE=true for a public \
                 container; to use the identity of this Azure machine, \
                 AZURE_CREDENTIAL_TYPE=managed_identity",
    )
}

/// Parses a boolean as `object_store` does.
fn parse_bool(value: &str) -> bool {
    ["1", "true", "on", "yes", "y"].contains(&value.to_ascii_lowercase().as_str())
}
