package cluster

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/commands"
	"daycare/cmd/daycare/peers"
	"daycare/cmd/daycare/term"
	"daycare/engine/cluster"
	"daycare/engine/cluster/server"
	"daycare/engine/config"
	"daycare/engine/disk"
	"daycare/engine/folders"
	"daycare/engine/workspace"
)

// Command is about machines that share agents.
func Command(c *term.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "Run the same agents on several machines",
		Long: "Run the same agents on several machines: each agent is awake on one of them, and another machine takes\n" +
			"over when that one ends. NATS servers keep what the machines share. docs/cluster.md explains how to set it\n" +
			"up and what is promised.",
		Example: "  daycare cluster server --store /var/lib/daycare-nats\n" +
			"  daycare start --join nats://127.0.0.1:4222\n  daycare cluster status",
		Args: term.NoSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(serverCommand(c), statusCommand(c), exportCommand(c), importCommand(c), repairCommand(c))
	return cmd
}

// passwordVariable has the password of the servers; in a workspace auth.json has it as "cluster".
const passwordVariable = "DAYCARE_SECRET_CLUSTER"

func serverCommand(c *term.App) *cobra.Command {
	var o server.Options
	cmd := &cobra.Command{
		Use:   "server",
		Short: "Run a NATS server with the settings that agents need",
		Long: "Run a NATS server with JetStream that syncs each message to disk before it acknowledges it. One server\n" +
			"keeps one copy of everything; three servers on three machines, each with --peer-listen and --peers, keep\n" +
			"working when one of them ends. To be reached from other machines, it needs a certificate, a user, and the\n" +
			"password in " + passwordVariable + ". Ctrl-C or SIGTERM ends it. Only builds with the tag natsserver have\n" +
			"this command.",
		Example: "  daycare cluster server --store /var/lib/daycare-nats\n" +
			"  daycare cluster server --name n1 --store /var/lib/daycare-nats --listen 0.0.0.0:4222 \\\n" +
			"    --peer-listen 0.0.0.0:6222 --peers n1:6222,n2:6222,n3:6222 \\\n" +
			"    --user daycare --tls-cert n1.pem --tls-key n1.key --tls-ca ca.pem",
		Args: term.Words(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Store == "" {
				return term.Usage(cmd, "--store is missing: name a folder for the server's data")
			}
			if o.Name == "" {
				o.Name, _ = os.Hostname() // without a name the server picks one
			}
			o.Access.Password = os.Getenv(passwordVariable)
			o.Log = slog.New(slog.NewTextHandler(c.Err, &slog.HandlerOptions{Level: slog.LevelWarn}))
			return runServer(cmd.Context(), c, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Name, "name", "", "the `NAME` of the server among others (default: the machine's name)")
	f.StringVar(&o.Listen, "listen", "127.0.0.1:4222", "`HOST:PORT` where daycares connect")
	f.StringVar(&o.Store, "store", "", "the `FOLDER` for the server's data")
	f.StringVar(&o.Peers.Listen, "peer-listen", "", "`HOST:PORT` where other servers connect")
	f.StringSliceVar(&o.Peers.Routes, "peers", nil, "`HOST:PORT` of each server, where the others connect")
	f.StringVar(&o.Access.User, "user", "", "the user `NAME` that daycare and other servers connect with; password in "+passwordVariable)
	f.StringVar(&o.Access.Cert, "tls-cert", "", "PEM `FILE` with the certificate")
	f.StringVar(&o.Access.Key, "tls-key", "", "PEM `FILE` with its key")
	f.StringVar(&o.Access.CA, "tls-ca", "", "PEM `FILE` with the CA that signs the servers' certificates")

	return cmd
}

// runServer runs until a signal.
func runServer(ctx context.Context, c *term.App, o server.Options) error {
	signals := c.TakeSignals()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-signals:
			cancel()
		case <-ctx.Done():
		}
	}()

	return server.Run(ctx, o, func(address string) {
		c.Print("NATS server %s ready on %s\n", o.Name, address)
		c.Note("join it with: daycare start --join %s", address)
	})
}

func statusCommand(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use:     "status",
		Short:   "List the live machines of the cluster",
		Long:    "List the live machines of the cluster, as the daemon of this workspace sees them.",
		Example: "  daycare cluster status",
		Args:    term.Words(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := c.Daemon(cmd.Context())
			if err != nil {
				return err
			}
			s, err := client.Status(cmd.Context())
			if err != nil {
				return fmt.Errorf("read status: %w", err)
			}
			if c.JSON {
				return c.PrintJSON(s.Machines)
			}
			if len(s.Machines) == 0 {
				c.Print("this daemon works alone\n")
				c.Note("join a cluster with: daycare start --join URL")
				return nil
			}

			return commands.Machines(c, s)
		},
	}
}

// exportFor bounds how long a machine waits for the servers.
const exportFor = time.Hour

func exportCommand(c *term.App) *cobra.Command {
	var join []string
	cmd := &cobra.Command{
		Use:   "export FOLDER",
		Short: "Copy all agents of the cluster into a workspace that works alone",
		Long: "Copy all agents of the cluster, with their attachments, tasks, memory and everything else that the\n" +
			"machines share, into FOLDER/.daycare, each as it is at this moment. The cluster does not change. A daycare\n" +
			"started there works alone, on copies: to replace the cluster with it, stop the cluster first.",
		Example: "  daycare cluster export /srv/alone && daycare --workspace /srv/alone start",
		Args:    term.Words(0, "FOLDER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return export(cmd.Context(), c, args[0], join)
		},
	}
	cmd.Flags().StringSliceVar(&join, "join", nil, "the `URL`s of the cluster's servers (default: those of this workspace)")

	return cmd
}

func export(ctx context.Context, c *term.App, folder string, join []string) error {
	to := workspace.At(folder).Data
	conf, err := reach(c, to, join)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o700); err != nil {
		return fmt.Errorf("make the folder: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, exportFor)
	defer cancel()
	n, err := cluster.Export(ctx, conf)
	if err != nil {
		return term.Wrap(err, "export the agents of the cluster")
	}
	if c.JSON {
		return c.PrintJSON(struct {
			Agents int    `json:"agents"`
			Folder string `json:"folder"`
		}{n, folder})
	}
	c.Print("%s copied to %s\n", term.Plural(n, "agent", "agents"), to)

	return nil
}

// reach is how the servers join are reached, by default those of this workspace, by a process that keeps files in home.
func reach(c *term.App, home string, join []string) (conf cluster.Config, err error) {
	at, err := c.Place()
	if err != nil {
		return conf, err
	}
	own := at.Data
	settings, _, err := config.Load(own, os.LookupEnv)
	if err != nil {
		return conf, err
	}
	k := settings.Cluster
	if len(join) > 0 {
		k.Servers = join
	}
	if !k.On() {
		if k.Servers, err = peers.Membership(own); err != nil {
			return conf, err
		}
	}
	if !k.On() {
		return conf, term.NotFound("name its servers with --join URL", "this workspace is not part of a cluster")
	}
	if d := k.Check(); d != nil {
		return conf, fmt.Errorf("%s\n%s", d.Reason, d.Remedy)
	}

	return peers.Config(at, k, cluster.Config{Name: cmp.Or(k.Name, "command"), Root: home, Volume: disk.NewVolume(home),
		Covers: folders.Replicated, Shared: peers.Shared(), Log: slog.New(slog.DiscardHandler)}), nil
}
