# The static library of the release, which is built with Rust.
set(VCPKG_BUILD_TYPE release)
# The CMake files of the release know their own place.
set(VCPKG_POLICY_SKIP_MISPLACED_CMAKE_FILES_CHECK enabled)
set(VCPKG_POLICY_SKIP_LIB_CMAKE_MERGE_CHECK enabled)
vcpkg_download_distfile(ARCHIVE
  URLS "@URL@/echoless-c-@VERSION@-x86_64-linux.tar.gz"
  FILENAME "echoless-c-@VERSION@-x86_64-linux.tar.gz"
  SHA512 "@C_SHA512@")
vcpkg_extract_source_archive(SOURCE_PATH ARCHIVE "${ARCHIVE}")
file(INSTALL "${SOURCE_PATH}/include" DESTINATION "${CURRENT_PACKAGES_DIR}")
file(INSTALL "${SOURCE_PATH}/lib" DESTINATION "${CURRENT_PACKAGES_DIR}")
vcpkg_fixup_pkgconfig()
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/share/doc/echoless/LICENSE-MIT" "${SOURCE_PATH}/share/doc/echoless/LICENSE-APACHE"
  "${SOURCE_PATH}/share/doc/echoless/THIRD-PARTY.txt")
