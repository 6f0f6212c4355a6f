from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.files import copy, get


class Echoless(ConanFile):
    name = "echoless"
    version = "@VERSION@"
    description = "Duplicate detection on endless streams, in fixed memory"
    license = "MIT OR Apache-2.0"
    homepage = "@URL@"
    package_type = "library"
    settings = "os", "arch"
    options = {"shared": [True, False]}
    default_options = {"shared": False}

    def validate(self):
        if (self.settings.os, self.settings.arch) != ("Linux", "x86_64"):
            raise ConanInvalidConfiguration("the release has libraries for Linux on x86_64 only")

    def build(self):
        get(self, "@URL@/echoless-c-@VERSION@-x86_64-linux.tar.gz", sha256="@C_SHA256@", strip_root=True)

    def package(self):
        library = "libecholess.so*" if self.options.shared else "libecholess.a"
        copy(self, "include/*", self.build_folder, self.package_folder)
        copy(self, f"lib/{library}", self.build_folder, self.package_folder)
        for licence in ("LICENSE-*", "THIRD-PARTY.txt"):
            copy(self, licence, f"{self.build_folder}/share/doc/echoless", f"{self.package_folder}/licenses")

    def package_info(self):
        self.cpp_info.libs = ["echoless"]
        self.cpp_info.system_libs = ["pthread", "dl", "m"]
