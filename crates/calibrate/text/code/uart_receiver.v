// -----------------------------------------------------------------------------
// uart_receiver.v - 8N1 serial receiver with oversampling and a small FIFO
//
// The line is sampled sixteen times per bit; each bit is decided by a majority
// of the three samples around its centre, so a single glitch cannot flip it.
// A start bit shorter than half a bit time is treated as noise.
//
// CLK_HZ / (16 * BAUD) is rounded to the nearest integer. At 50 MHz and 115200
// baud the divisor is 27, an error of 0.5 %, comfortably inside tolerance.
// -----------------------------------------------------------------------------
`default_nettype none

module uart_receiver #(
    parameter integer CLK_HZ     = 50_000_000,
    parameter integer BAUD       = 115_200,
    parameter integer FIFO_DEPTH = 16          // must be a power of two
) (
    input  wire       clk,
    input  wire       rst_n,
    input  wire       rx,

    output wire [7:0] data,
    output wire       valid,
    input  wire       ready,

    output reg        framing_error,           // sticky until clear_errors
    output reg        overrun,
    input  wire       clear_errors
);

    localparam integer DIVISOR = (CLK_HZ + 8 * BAUD) / (16 * BAUD);
    localparam integer DIV_W   = $clog2(DIVISOR);
    localparam integer PTR_W   = $clog2(FIFO_DEPTH);

    // Two flip-flops tame metastability; reset to the idle level of the line.
    reg [1:0] sync;
    always @(posedge clk or negedge rst_n)
        if (!rst_n) sync <= 2'b11;
        else        sync <= {sync[0], rx};
    wire line = sync[1];

    // Oversampling tick
    reg [DIV_W-1:0] divider;
    wire tick = (divider == DIVISOR - 1);
    always @(posedge clk or negedge rst_n)
        if (!rst_n)    divider <= {DIV_W{1'b0}};
        else if (tick) divider <= {DIV_W{1'b0}};
        else           divider <= divider + 1'b1;

    // Bit engine
    localparam [1:0] IDLE = 2'd0, START = 2'd1, BITS = 2'd2, STOP = 2'd3;

    reg [1:0] state;
    reg [3:0] phase;        // position within the bit, 0..15
    reg [2:0] index;
    reg [7:0] shift;
    reg [1:0] votes;        // samples at phases 7 and 8; the third is live
    reg       push;

    wire majority = (votes[0] & votes[1]) | (votes[0] & line) | (votes[1] & line);

    always @(posedge clk or negedge rst_n) begin
        if (!rst_n) begin
            state         <= IDLE;
            phase         <= 4'd0;
            index         <= 3'd0;
            shift         <= 8'h00;
            votes         <= 2'b00;
            push          <= 1'b0;
            framing_error <= 1'b0;
        end else begin
            push <= 1'b0;
            if (clear_errors) framing_error <= 1'b0;

            if (tick) begin
                phase <= phase + 4'd1;
                if (phase == 4'd7 || phase == 4'd8) votes <= {votes[0], line};

                case (state)
                    IDLE:
                        if (!line) begin
                            state <= START;
                            phase <= 4'd1;
                        end

                    START:
                        if (phase == 4'd9 && majority) state <= IDLE;   // false start
                        else if (phase == 4'd15) begin
                            state <= BITS;
                            index <= 3'd0;
                        end

                    BITS: begin
                        if (phase == 4'd9) shift <= {majority, shift[7:1]};   // LSB first
                        if (phase == 4'd15) begin
                            index <= index + 3'd1;
                            if (index == 3'd7) state <= STOP;
                        end
                    end

                    STOP:
                        // Leave at mid-bit: a slightly fast sender may already be
                        // pulling the line down for its next start bit.
                        if (phase == 4'd9) begin
                            state <= IDLE;
                            if (majority) push          <= 1'b1;
                            else          framing_error <= 1'b1;
                        end
                endcase
            end
        end
    end

    // FIFO with one extra pointer bit to tell full from empty
    reg [7:0]     memory [0:FIFO_DEPTH-1];
    reg [PTR_W:0] wr, rd;

    wire empty = (wr == rd);
    wire full  = (wr[PTR_W] != rd[PTR_W]) && (wr[PTR_W-1:0] == rd[PTR_W-1:0]);

    assign valid = !empty;
    assign data  = memory[rd[PTR_W-1:0]];

    always @(posedge clk)
        if (push && !full) memory[wr[PTR_W-1:0]] <= shift;

    always @(posedge clk or negedge rst_n) begin
        if (!rst_n) begin
            wr      <= {(PTR_W+1){1'b0}};
            rd      <= {(PTR_W+1){1'b0}};
            overrun <= 1'b0;
        end else begin
            if (clear_errors)    overrun <= 1'b0;
            if (push && full)    overrun <= 1'b1;
            if (push && !full)   wr <= wr + 1'b1;
            if (valid && ready)  rd <= rd + 1'b1;
        end
    end

endmodule

`default_nettype wire
