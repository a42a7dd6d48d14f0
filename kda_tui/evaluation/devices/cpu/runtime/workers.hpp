// The OS threads that run blocks. Worker 0 is the caller.
#pragma once
#include <pthread.h>
#include <stdint.h>

namespace kda {

class Workers {
  public:
    explicit Workers(unsigned count);
    unsigned count() const { return count_; }

    // Calls work(context, worker) once on each worker and waits for all of them.
    void all(void (*work)(void* context, unsigned worker), void* context);

  private:
    struct Start {
        Workers* workers;
        unsigned worker;
    };
    static void* main_of(void* start);

    unsigned count_;
    uint32_t round_ = 0, busy_ = 0;
    void (*work_)(void*, unsigned) = nullptr;
    void* context_ = nullptr;
    pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t begun_ = PTHREAD_COND_INITIALIZER, done_ = PTHREAD_COND_INITIALIZER;
};

}  // namespace kda
