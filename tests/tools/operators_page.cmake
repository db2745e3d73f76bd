# cmake -DREEF=... -DOPTIONS=... -DPAGE=... -P operators_page.cmake: the committed page is what the
# command prints. `reef ops OPTIONS > PAGE` renews it.
execute_process(COMMAND ${REEF} ops ${OPTIONS} OUTPUT_VARIABLE printed RESULT_VARIABLE status)
file(READ ${PAGE} committed)
if(NOT status EQUAL 0 OR NOT printed STREQUAL committed)
    list(JOIN OPTIONS " " options)
    message(FATAL_ERROR "${PAGE} is not what `reef ops ${options}` prints")
endif()
