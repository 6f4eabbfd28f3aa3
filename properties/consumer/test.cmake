# Installs the build in BUILD, then configures, builds and runs the consumer against that.
set(prefix ${BUILD}/consumer/prefix)
file(REMOVE_RECURSE ${BUILD}/consumer)
macro(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endmacro()
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})
run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR} -B ${BUILD}/consumer/build -G ${GENERATOR} -D CMAKE_PREFIX_PATH=${prefix}
    -D CMAKE_BUILD_TYPE=Debug -D CMAKE_CXX_COMPILER=${COMPILER} -D CMAKE_CXX_FLAGS=${FLAGS})
run(${CMAKE_COMMAND} --build ${BUILD}/consumer/build)
execute_process(COMMAND ${BUILD}/consumer/build/consumer OUTPUT_VARIABLE said ECHO_OUTPUT_VARIABLE COMMAND_ERROR_IS_FATAL ANY)
if(said MATCHES "there is a GPU")
  run(${BUILD}/consumer/build/example)
endif()
