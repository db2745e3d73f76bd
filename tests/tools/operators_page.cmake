# cmake -DREEF=... -DPAGE=... -P operators_page.cmake: the committed support matrix is what the
# command prints. `reef ops --markdown > docs/operators.md` renews it.
execute_process(COMMAND ${REEF} ops --markdown OUTPUT_VARIABLE printed RESULT_VARIABLE status)
file(READ ${PAGE} committed)
if(NOT status EQUAL 0 OR NOT printed STREQUAL committed)
    message(FATAL_ERROR "${PAGE} is not what `reef ops --markdown` prints")
endif()
