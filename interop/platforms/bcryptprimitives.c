// Random numbers for the standard library of Rust in versions of Wine that do not have this library.
#include <stddef.h>
#include <windows.h>
#include <ntsecapi.h>

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T len) {
    return RtlGenRandom(data, (ULONG)len);
}
