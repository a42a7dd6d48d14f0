#include "workers.hpp"

#include "block.hpp"
#include "crash.hpp"
#include "made.hpp"

namespace kda {
namespace {

void settle_in() {
    use_signal_stack();
    this_block = make<Block>();
}

}  // namespace

Workers::Workers(unsigned count) : count_(count) {
    settle_in();
    for (unsigned worker = 1; worker < count; worker++) {
        pthread_t thread;
        if (pthread_create(&thread, nullptr, main_of, make<Start>(Start{this, worker})) != 0) {
            stop("infrastructure: no OS thread could be started");
        }
        pthread_detach(thread);
    }
}

void* Workers::main_of(void* argument) {
    const Start start = *static_cast<Start*>(argument);
    settle_in();
    Workers& workers = *start.workers;
    uint32_t seen = 0;
    for (;;) {
        pthread_mutex_lock(&workers.mutex_);
        while (workers.round_ == seen) pthread_cond_wait(&workers.begun_, &workers.mutex_);
        seen = workers.round_;
        pthread_mutex_unlock(&workers.mutex_);
        workers.work_(workers.context_, start.worker);
        if (__atomic_sub_fetch(&workers.busy_, 1, __ATOMIC_ACQ_REL) == 0) {
            pthread_mutex_lock(&workers.mutex_);
            pthread_cond_signal(&workers.done_);
            pthread_mutex_unlock(&workers.mutex_);
        }
    }
}

void Workers::all(void (*work)(void*, unsigned), void* context) {
    if (count_ > 1) {
        pthread_mutex_lock(&mutex_);
        work_ = work;
        context_ = context;
        busy_ = count_ - 1;
        round_++;
        pthread_cond_broadcast(&begun_);
        pthread_mutex_unlock(&mutex_);
    }
    work(context, 0);
    if (count_ > 1) {
        pthread_mutex_lock(&mutex_);
        while (__atomic_load_n(&busy_, __ATOMIC_ACQUIRE)) pthread_cond_wait(&done_, &mutex_);
        pthread_mutex_unlock(&mutex_);
    }
}

}  // namespace kda
