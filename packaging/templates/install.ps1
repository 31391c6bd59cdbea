# Installs @COMMAND@ @VERSION@ for the current user. It checks the SHA-256 digest of the archive.
#
#   GGUF_INSTALL_DIR    folder of the command; default: %LOCALAPPDATA%\Programs\@COMMAND@

# A script block: the variables and preferences stay out of the session.
& {
    $ErrorActionPreference = 'Stop'
    # The progress bar makes downloads slow in Windows PowerShell.
    $ProgressPreference = 'SilentlyContinue'
    [Net.ServicePointManager]::SecurityProtocol = [Net.ServicePointManager]::SecurityProtocol -bor [Net.SecurityProtocolType]::Tls12

    $archives = @{
@WINDOWS@
    }
    # Windows on ARM64 runs binaries for x64.
    $processor = if ([Environment]::Is64BitOperatingSystem) { 'X64' } else { 'X86' }
    if (-not $archives.ContainsKey($processor)) {
        throw "there is no binary for $processor; @REPOSITORY@ explains how to build one"
    }
    $folder, $digest = $archives[$processor]

    $target = $env:GGUF_INSTALL_DIR
    if (-not $target) { $target = Join-Path $env:LOCALAPPDATA 'Programs\@COMMAND@' }
    $command = Join-Path $target '@COMMAND@.exe'
    if ((Test-Path $command) -and -not ("$(& $command --version)".StartsWith('@COMMAND@ '))) {
        throw "$command exists and is another program; set GGUF_INSTALL_DIR to a different folder"
    }

    $stage = Join-Path ([IO.Path]::GetTempPath()) ([IO.Path]::GetRandomFileName())
    New-Item -ItemType Directory -Path $stage | Out-Null
    try {
        $archive = Join-Path $stage 'archive.zip'
        $source = "@URL@/$folder.zip"
        Invoke-WebRequest -UseBasicParsing -Uri $source -OutFile $archive
        $actual = (Get-FileHash -Algorithm SHA256 -Path $archive).Hash
        if ($actual -ne $digest) {
            throw "$source has the SHA-256 digest $actual; expected $digest"
        }
        Expand-Archive -Path $archive -DestinationPath $stage
        New-Item -ItemType Directory -Force -Path $target | Out-Null
        Move-Item -Force -Path (Join-Path $stage "$folder\@COMMAND@.exe") -Destination $command
    } finally {
        Remove-Item -Recurse -Force -Path $stage
    }

    Write-Output "$(& $command --version) is installed as $command"
    if (($env:Path -split ';') -notcontains $target) {
        Write-Output 'To run it by its name, add the folder to PATH and open a new terminal:'
        Write-Output "  [Environment]::SetEnvironmentVariable('Path', [Environment]::GetEnvironmentVariable('Path', 'User') + ';$target', 'User')"
    }
}
