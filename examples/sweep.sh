#!/bin/sh
# Workers on this machine share the runs of one comparison: sh sweep.sh 4 --data loans.csv --label …
# Called again it goes on. On several machines with a common disk: call it there on each.
workers=$1
shift

worker() {
    while :; do
        pde compare "$@" --storage "${STORE:-journal:sweep.journal}" --out runs/sweep
        status=$?
        [ $status -eq 137 ] || return $status # 137: killed, as for want of memory; another one takes over
    done
}

mkdir -p runs
for i in $(seq "$workers"); do
    worker "$@" >"runs/worker-$i.txt" 2>&1 &
done
wait
report=$(sed -n '/^# /,$p' runs/worker-1.txt) # every worker prints it at its end
[ -n "$report" ] && printf '%s\n' "$report" || tail -n 1 runs/worker-*.txt
