# The chips of this build. A chip CHIP defines `void reef::CHIP::enrol(runtime::Registry&)`; nothing else
# names it.
set(REEF_CHIPS edgetpu rk3588 sophgo)

# reef_enrolment(FILE FUNCTION CHIP...): writes a source that defines reef::runtime::FUNCTION, which
# enrols the chips in that order.
function(reef_enrolment file function)
    set(text "// Made by CMake from the list of chips.\n"
             "namespace reef::runtime {\nclass Registry;\nvoid ${function}(Registry& registry);\n}\n")
    foreach(chip IN LISTS ARGN)
        string(APPEND text "namespace reef::${chip} {\nvoid enrol(runtime::Registry& registry);\n}\n")
    endforeach()
    string(APPEND text "void reef::runtime::${function}([[maybe_unused]] Registry& registry) {\n")
    foreach(chip IN LISTS ARGN)
        string(APPEND text "    ${chip}::enrol(registry);\n")
    endforeach()
    string(APPEND text "}\n")
    string(REPLACE "\n;" "\n" text "${text}")
    file(CONFIGURE OUTPUT ${file} CONTENT "${text}" @ONLY)
endfunction()
