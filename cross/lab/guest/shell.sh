# For `cargo lab shell`: a shell with job control on the console. However the shell ends, the guest
# ends well.
echo "Board $CONTIGO_BOARD, $(uname -srm). The programs are in /bin; \`exit\` ends the guest, Ctrl-A X ends it at once."
setsid cttyhack sh -i
contigo-lab-exit 0
