# echoless::echoless is the shared library, echoless::static the static one.
get_filename_component(_echoless_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET echoless::echoless)
  find_package(Threads REQUIRED)
  add_library(echoless::echoless SHARED IMPORTED)
  set_target_properties(echoless::echoless PROPERTIES
    IMPORTED_LOCATION "${_echoless_prefix}/lib/libecholess.so"
    INTERFACE_INCLUDE_DIRECTORIES "${_echoless_prefix}/include")
  add_library(echoless::static STATIC IMPORTED)
  set_target_properties(echoless::static PROPERTIES
    IMPORTED_LOCATION "${_echoless_prefix}/lib/libecholess.a"
    INTERFACE_INCLUDE_DIRECTORIES "${_echoless_prefix}/include"
    INTERFACE_LINK_LIBRARIES "Threads::Threads;${CMAKE_DL_LIBS};m")
endif()
unset(_echoless_prefix)
